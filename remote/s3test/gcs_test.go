package s3test

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
)

// The same by the protocol of Google Cloud Storage, against an emulator.
func TestTrainFromGoogle(t *testing.T) {
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
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, 500, 64, 64)
	url := "gs://" + Bucket + "/sets/train"
	b, u, err := cloud.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	upload(t, b, dir, u.Key)
	local, err := mmapds.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	d := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	opts := loader.Options{BatchSize: 32, Order: loader.Shuffle{}}
	want, _ := digest(t, local, opts, 0)
	if got, _ := digest(t, d, opts, 0); got != want {
		t.Error("other bytes than from the local dataset")
	}
}
