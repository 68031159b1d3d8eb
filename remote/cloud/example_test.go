//go:build !nocloud

package cloud_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	// Or s3://lab/sets/train?region=eu-west-1: the bucket is s3://lab and the key sets/train.
	bucket, u, err := cloud.Open(ctx, "file://"+filepath.ToSlash(dir)+"/train")
	if err != nil {
		log.Fatal(err)
	}
	c := remote.NewClient(bucket, remote.Policy{})
	defer c.Close()
	if err := c.WriteAll(ctx, u.Key+"/hello.txt", []byte("hello"), remote.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	for o, err := range c.List(ctx, u.Key+"/", "") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(o.Key, o.Size)
	}
	// Output:
	// train/hello.txt 5
}
