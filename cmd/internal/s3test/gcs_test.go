package s3test

import (
	"net"
	"strconv"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// The same by the protocol of Google Cloud Storage, against an emulator.
func TestGoogle(t *testing.T) {
	address := freeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: host, Port: uint16(number), PublicHost: address})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: Bucket})
	t.Setenv("STORAGE_EMULATOR_HOST", address)
	testStore(t, func(key string) string { return "gs://" + Bucket + "/" + key })
}
