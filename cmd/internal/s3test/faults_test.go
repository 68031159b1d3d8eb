package s3test

import (
	"bytes"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/mirror"
)

// Connections that are reset, cut, stopped or slow: the bytes are right.
func TestFaultsOfALink(t *testing.T) {
	s := Start(t)
	dir := filepath.Join(s.Root, "ds")
	write(t, dir, 400, 64, 64, 3)
	local, err := mmapds.Open(dir)
	require.NoError(t, err)
	defer local.Close()
	opts := loader.Options{BatchSize: 16, Sampler: sampler.Shuffle{}, Seed: 8, Workers: 2}
	want, n := digest(t, local, opts, 0)
	for kind, attributes := range map[string]string{
		"reset_peer": `{"timeout": 20}`, "limit_data": `{"bytes": 300000}`, "bandwidth": `{"rate": 2000}`, "slicer": `{"average_size": 500, "size_variation": 100, "delay": 10}`,
	} {
		t.Run(kind, func(t *testing.T) {
			l := NewLink(t, s.Address)
			d := openURL(t, s.URL(l.Address, "ds"), mirror.Options{
				CacheDir: filepath.Join(t.TempDir(), "cache"),
				Policy:   remote.Policy{Stall: 2 * time.Second, Backoff: 5 * time.Millisecond, Attempts: 50},
			})
			l.AddSome(t, "fault", kind, 0.3, attributes)
			if got, m := digest(t, d, opts, 0); got != want || m != n {
				t.Errorf("other bytes than from the local dataset: %d of %d", m, n)
			}
			st := d.Stats()
			if st.Fetched != local.Files().Bytes() {
				t.Errorf("%d bytes were taken of %d", st.Fetched, local.Files().Bytes())
			}
			t.Logf("%d requests, %d retries", st.Requests, st.Retries)
		})
	}
}

// Neither errors nor logs nor what is in the cache have a secret in them.
func TestSecretsStaySecret(t *testing.T) {
	s := Start(t)
	write(t, filepath.Join(s.Root, "ds"), 100, 8, 8)
	var said bytes.Buffer
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	read, out, err := os.Pipe()
	require.NoError(t, err)
	before := os.Stderr
	os.Stderr = out
	cache := filepath.Join(t.TempDir(), "cache")
	const password = "hunter2-of-the-endpoint"
	secret := strings.Replace(s.URL(s.Address, "ds"), "http://", "http://someone:"+password+"@", 1)
	for _, url := range []string{
		s.URL(s.Address, "ds"), secret, strings.Replace(secret, "/ds?", "/no?", 1), strings.Replace(secret, s.Address, "127.0.0.1:1", 1),
		strings.Replace(secret, "region=us-east-1", "region=%zz", 1), secret + "&nonsense=" + SecretKey, "s3://" + AccessKey + ":" + SecretKey + "@lab/ds",
	} {
		d, err := tryURL(t.Context(), url, mirror.Options{CacheDir: cache, Policy: remote.Policy{Attempts: 2}})
		if err != nil {
			said.WriteString(err.Error() + "\n")
			continue
		}
		digest(t, d, loader.Options{BatchSize: 10}, 0)
		said.WriteString(d.Name() + d.Dir() + "\n")
		d.Close()
	}
	os.Stderr = before
	out.Close()
	if _, err := said.ReadFrom(read); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(cache, func(path string, e fs.DirEntry, err error) error {
		said.WriteString(path + "\n")
		if err == nil && e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			said.Write(data)
			return err
		}
		return err
	})
	require.NoError(t, err)
	for _, word := range []string{SecretKey, AccessKey, password} {
		if at := strings.Index(said.String(), word); at >= 0 {
			t.Errorf("the output has %q: %q", word, said.String()[max(0, at-100):at+len(word)])
		}
	}
}
