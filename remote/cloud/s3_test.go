//go:build !nocloud

package cloud

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/remote"
)

// openS3 opens a bucket of a server that speaks S3, or pretends to.
func openS3(t *testing.T, endpoint string) remote.Bucket {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	b, _, err := Open(t.Context(), "s3://lab/x?region=us-east-1&use_path_style=true&endpoint="+endpoint)
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

func read(t *testing.T, b remote.Bucket) error {
	body, err := b.ReadRange(t.Context(), "x", 0, -1, "")
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}

// As many connections are kept as there were reads at a time.
func TestConnectionsAreKept(t *testing.T) {
	const readers, rounds = 64, 5
	var made atomic.Int64
	var under sync.WaitGroup // an answer comes when all have asked
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		under.Done()
		under.Wait()
		fmt.Fprint(w, "content")
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	b := openS3(t, s.URL)
	least := int64(readers)
	for range rounds {
		before := made.Load()
		under.Add(readers)
		var all sync.WaitGroup
		for range readers {
			all.Go(func() {
				if err := read(t, b); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		least = min(least, made.Load()-before)
	}
	if least > readers/2 { // one that has ended may be kept a moment after that
		t.Errorf("%d connections were made in each round of %d reads", least, readers)
	}
}

// A store that speaks HTTP/2 gets a connection for each read, too.
func TestNoConnectionIsShared(t *testing.T) {
	var protocol atomic.Value
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { protocol.Store(r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for name, want := range map[string]string{"Go's": "HTTP/2.0", "penstock's": "HTTP/1.1"} {
		tr := http.DefaultTransport.(*http.Transport).Clone()
		if name == "penstock's" {
			tr = googleTransport()
		}
		tr.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		tr.TLSClientConfig.NextProtos = nil
		answer, err := (&http.Client{Transport: tr}).Get(s.URL)
		require.NoError(t, err)
		answer.Body.Close()
		if got := protocol.Load(); got != want {
			t.Errorf("the transport %s speaks %v, want %s", name, got, want)
		}
		tr.CloseIdleConnections()
	}
}

// Reads trust the authorities that the SDK is configured with.
func TestAuthorityOfAStore(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "content") }))
	defer s.Close()
	if err := read(t, openS3(t, s.URL)); !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), "AWS_CA_BUNDLE") {
		t.Errorf("an unknown authority: %v", err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, text, 0o600))
	t.Setenv("AWS_CA_BUNDLE", file)
	if err := read(t, openS3(t, s.URL)); err != nil {
		t.Error(err)
	}
}

// If the clock is hours off, requests are signed with the object store's time.
func TestClockIsOff(t *testing.T) {
	for _, off := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now := time.Now().Add(off)
			w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
			signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if err != nil || signed.Sub(now).Abs() > 15*time.Minute {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, "<Error><Code>RequestTimeTooSkewed</Code><Message>said</Message></Error>")
				return
			}
			fmt.Fprint(w, "content")
		}))
		if err := read(t, openS3(t, s.URL)); err != nil {
			t.Errorf("%v off: %v", off, err)
		}
		s.Close()
	}
}

// An error that a retry does not fix is returned at once, and says what to do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		kind   error // nil may pass
		says   string
	}{
		{404, "NoSuchKey", remote.ErrNotFound, "NoSuchKey: said"},
		{404, "NoSuchBucket", remote.ErrNoBucket, "there is no such bucket"},
		{404, "SomethingElse", remote.ErrNotFound, "said"},
		{403, "AccessDenied", remote.ErrPermission, "RequestID: id-of-it"},
		{403, "RequestTimeTooSkewed", remote.ErrPermission, "said"},
		{400, "InvalidBucketName", remote.ErrInvalid, "InvalidBucketName: said"},
		{400, "BadDigest", nil, "said"},
		{301, "PermanentRedirect", remote.ErrInvalid, "?region="},
		{409, "OperationAborted", nil, "said"},
		{412, "PreconditionFailed", remote.ErrChanged, "said"},
		{429, "SlowDown", nil, "said"},
		{503, "SlowDown", nil, "said"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("x-amz-request-id", "id-of-it")
			w.WriteHeader(c.status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>said</Message></Error>", c.code)
		}))
		err := read(t, openS3(t, s.URL))
		var known *remote.Error
		if !errors.As(err, &known) || known.Kind != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d %s: %v", c.status, c.code, err)
		}
		asked := " (region: us-east-1; credentials: AWS_ACCESS_KEY_ID)"
		if named := c.kind == remote.ErrPermission || c.kind == remote.ErrNoBucket || c.kind == remote.ErrInvalid; strings.Contains(err.Error(), asked) != named {
			t.Errorf("%d %s: whom was asked, and as whom: %v", c.status, c.code, err)
		}
		if c.status == 404 && strings.Contains(err.Error(), "id-of-it") {
			t.Errorf("%d %s says more than is asked: %v", c.status, c.code, err)
		}
		s.Close()
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	host := strings.TrimPrefix(plain.URL, "http://")
	for endpoint, says := range map[string]string{host: "with its scheme", "localhost:9000": "with its scheme", "https://" + host: "endpoint=http://"} {
		if err := read(t, openS3(t, endpoint)); !errors.Is(err, remote.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("endpoint %s: %v", endpoint, err)
		}
	}
}
