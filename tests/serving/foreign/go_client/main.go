// Calls one method of a server that it knows from descriptors alone, as a client in any language may.
//
//	client ADDRESS DESCRIPTOR_SET /package.Service/Method < request.json > answer.json
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const timeout = time.Minute

type answer struct {
	Code     uint32          `json:"code"`
	Message  string          `json:"message"`
	Response json.RawMessage `json:"response,omitempty"`
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address, descriptors, path string) error {
	files, err := read(descriptors)
	if err != nil {
		return err
	}
	method, err := find(files, path)
	if err != nil {
		return err
	}
	types := dynamicpb.NewTypes(files)
	given, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	request, response := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if err := (protojson.UnmarshalOptions{Resolver: types}).Unmarshal(given, request); err != nil {
		return err
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	said := status.Convert(connection.Invoke(ctx, path, request, response))
	result := answer{Code: uint32(said.Code()), Message: said.Message()}
	if said.Code() == 0 {
		if result.Response, err = (protojson.MarshalOptions{Resolver: types}).Marshal(response); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func read(path string) (*protoregistry.Files, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		return nil, err
	}
	return protodesc.NewFiles(set)
}

func find(files *protoregistry.Files, path string) (protoreflect.MethodDescriptor, error) {
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	found, err := files.FindDescriptorByName(protoreflect.FullName(service + "." + method))
	if err != nil {
		return nil, err
	}
	return found.(protoreflect.MethodDescriptor), nil
}
