// Google's own fake of Pub/Sub as a program: says where it listens, and serves until it is ended.
package main

import (
	"fmt"

	"cloud.google.com/go/pubsub/v2/pstest"
)

func main() {
	server := pstest.NewServerWithAddress("127.0.0.1:0")
	fmt.Println(server.Addr)
	select {}
}
