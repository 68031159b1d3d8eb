//go:build !nocloud

package cloud

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote"
)

func openDir(t *testing.T) (remote.Bucket, string) {
	t.Helper()
	dir := t.TempDir()
	b, u, err := Open(t.Context(), "file://"+dir+"/bucket/ds")
	require.NoError(t, err)
	if u.Key != "ds" || b.String() != "file://"+dir+"/bucket" {
		t.Errorf("%s, key %q", b, u.Key)
	}
	t.Cleanup(func() { b.Close() })
	return b, filepath.Join(dir, "bucket")
}

func TestFilesAsABucket(t *testing.T) {
	b, dir := openDir(t)
	c := requests.NewClient(b, remote.Policy{})
	data := bytes.Repeat([]byte("penstock"), 1000)
	require.NoError(t, c.WriteAll(t.Context(), "ds/a/b.bin", data, remote.WriteOptions{}))
	if got, err := os.ReadFile(filepath.Join(dir, "ds", "a", "b.bin")); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if list, err := os.ReadDir(filepath.Join(dir, "ds", "a")); err != nil || len(list) != 1 {
		t.Errorf("files next to it: %v, %v", list, err)
	}
	o, err := c.Stat(t.Context(), "ds/a/b.bin")
	if err != nil || o.Size != 8000 || o.ETag == "" {
		t.Fatalf("%+v, %v", o, err)
	}
	body, err := b.ReadRange(t.Context(), o.Key, 8, 16, o.ETag)
	require.NoError(t, err)
	got, err := io.ReadAll(body)
	if err != nil || string(got) != "penstockpenstock" || body.Object.Size != 8000 || body.Object.ETag != o.ETag {
		t.Errorf("%q, %+v, %v", got, body.Object, err)
	}
	body.Close()
	n := 0
	for o, err := range c.List(t.Context(), "ds/", "/") {
		if err != nil || o.Key != "ds/a/" || !o.Folder {
			t.Errorf("%+v, %v", o, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d names", n)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ds", "a", "b.bin"), []byte("new"), 0o644))
	if _, err := b.ReadRange(t.Context(), o.Key, 0, 2, o.ETag); !errors.Is(err, remote.ErrChanged) {
		t.Errorf("a changed file: %v", err)
	}
}

func TestWritersCommitOrNothing(t *testing.T) {
	b, dir := openDir(t)
	w, err := b.NewWriter(t.Context(), "x", remote.WriteOptions{})
	require.NoError(t, err)
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("an aborted write left %v", list)
	}
	for i, want := range []error{nil, remote.ErrExists} {
		w, err := b.NewWriter(t.Context(), "x", remote.WriteOptions{IfNotExist: true})
		require.NoError(t, err)
		if err := w.Commit(); !errors.Is(err, want) {
			t.Errorf("commit %d: %v", i, err)
		}
		w.Close()
	}
	if err := b.Copy(t.Context(), "x", "y"); err != nil {
		t.Error(err)
	}
	if err := b.Copy(t.Context(), "z", "y"); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("a copy of nothing: %v", err)
	}
	if err := b.Delete(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	if err := b.Delete(t.Context(), "x"); !errors.Is(err, remote.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, text := range []string{"ftp://x/y", "hf://models/x", "hdfs:///x", "s3://lab/x?nonsense=1", "/a/path"} {
		if b, _, err := Open(t.Context(), text); err == nil {
			b.Close()
			t.Errorf("%s is opened", text)
		}
	}
}

// A request without credentials is not repeated, and the error says how to set them.
func TestWhatIsMissing(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_CONNECTION_STRING"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	b, _, err := Open(t.Context(), "s3://lab/x")
	require.NoError(t, err)
	defer b.Close()
	if _, err := b.Stat(t.Context(), "x"); !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), "?region=") {
		t.Errorf("without a region: %v", err)
	}
	if _, _, err := Open(t.Context(), "azblob://lab/x"); !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), "?storage_account=") {
		t.Errorf("without an account: %v", err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	if _, _, err := Open(t.Context(), "gs://lab/x"); !errors.Is(err, remote.ErrPermission) || !strings.Contains(err.Error(), "gcloud auth") {
		t.Errorf("without credentials of Google's: %v", err)
	}
	for _, text := range []string{"gs://lab/x?anonymous=true", "gs://lab/x?access_id=-"} {
		b, _, err := Open(t.Context(), text)
		require.NoError(t, err)
		b.Close()
	}
	azure := errors.New("DefaultAzureCredential: failed to acquire a token.\nAttempted credentials:\n\tEnvironmentCredential: missing")
	if err := remote.NewError("read", "x", kindOf("read", azure), cause(azure)); !errors.Is(err, remote.ErrPermission) || !strings.Contains(err.Error(), "failed to acquire a token; give credentials: az login") {
		t.Errorf("without credentials of Azure's: %v", err)
	}
	for _, said := range []string{"get identity: no EC2 IMDS role found", "google: could not find default credentials"} {
		err := errors.New(said)
		if kindOf("read", err) != remote.ErrPermission || !strings.Contains(cause(err).Error(), "?anonymous=true") {
			t.Errorf("%s: %v, %v", said, kindOf("read", err), cause(err))
		}
	}
	if err := errors.New("connection reset"); kindOf("read", err) != nil || cause(err).Error() != "connection reset" {
		t.Errorf("%v: %v, %v", err, kindOf("read", err), cause(err))
	}
}
