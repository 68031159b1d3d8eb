package s3test

import (
	"net"
	"strconv"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/penstock/penstock/internal/testkit/require"
)

// The same by the protocol of Google Cloud Storage, against an emulator.
func TestGoogle(t *testing.T) {
	address := freeAddress(t)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: host, Port: uint16(number), PublicHost: address})
	require.NoError(t, err)
	defer server.Stop()
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: Bucket})
	t.Setenv("STORAGE_EMULATOR_HOST", address)
	testStore(t, func(key string) string { return "gs://" + Bucket + "/" + key })
}
