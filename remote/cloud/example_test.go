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
	defer bucket.Close()
	w, err := bucket.NewWriter(ctx, u.Join("hello.txt").Key, remote.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write([]byte("hello")); err != nil {
		log.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		log.Fatal(err)
	}
	page, err := bucket.ListPage(ctx, u.Key+"/", "", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range page.Objects {
		fmt.Println(o.Key, o.Size)
	}
	// Output:
	// train/hello.txt 5
}
