//go:build !nocloud

package cloud

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote"
)

// Without a region and credentials, the error alone says so: nothing of the SDK reaches stderr.
func TestSDKsAreQuiet(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	os.Stderr = w // the SDK takes it when a bucket is opened
	b, u, err := Open(context.Background(), "s3://lab/train")
	if err == nil {
		defer b.Close()
		_, err = b.Stat(context.Background(), u.Key)
	}
	os.Stderr = stderr
	w.Close()
	said, readErr := io.ReadAll(r)
	if readErr != nil || len(bytes.TrimSpace(said)) > 0 {
		t.Errorf("stderr: %q, error %v", said, readErr)
	}
	if !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), "no region") || !strings.Contains(err.Error(), "?region=eu-west-1") {
		t.Errorf("error %v", err)
	}
}
