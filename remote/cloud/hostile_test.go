//go:build !nocloud

package cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/remote"
)

// A store that answers other than it was asked: whatever comes is an error or the right bytes, and takes no more
// memory than was asked for.
func TestHostileEndpoint(t *testing.T) {
	object := make([]byte, 100_000)
	for i := range object {
		object[i] = byte(i * 7)
	}
	const off, n = 5000, 3000
	whole := func(w http.ResponseWriter) { w.Header().Set("ETag", `"1"`); _, _ = w.Write(object) }
	ranged := func(w http.ResponseWriter, begin, end int, tag string, body []byte) {
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", begin, end-1, len(object)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(body)
	}
	var count atomic.Int64
	attacks := map[string]func(w http.ResponseWriter, r *http.Request){
		"ignores the range": func(w http.ResponseWriter, r *http.Request) { whole(w) },
		"another range":     func(w http.ResponseWriter, r *http.Request) { ranged(w, off-1, off+n, `"1"`, object[off-1:off+n]) },
		"range in words": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", "bytes all of them")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(object[:n])
		},
		"short body": func(w http.ResponseWriter, r *http.Request) { ranged(w, off, off+n, `"1"`, object[off:off+10]) },
		"cut body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3000")
			ranged(w, off, off+n, `"1"`, object[off:off+10])
		},
		"another version": func(w http.ResponseWriter, r *http.Request) {
			ranged(w, off, off+n, fmt.Sprintf(`"%d"`, count.Add(1)+1), object[off:off+n])
		},
		"endless body": func(w http.ResponseWriter, r *http.Request) {
			ranged(w, off, off+n, `"1"`, nil)
			for r.Context().Err() == nil {
				if _, err := w.Write(object[off : off+n]); err != nil {
					return
				}
			}
		},
		"endless header": func(w http.ResponseWriter, r *http.Request) {
			for i := range 1 << 14 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1024))
			}
			whole(w)
		},
		"not XML": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("<Error><Code>" + strings.Repeat("<a>", 1<<16)))
		},
		"wrong size": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Content-Range", "bytes 5000-7999/9223372036854775807")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(object[off : off+n])
		},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(attack))
			defer s.Close()
			c := requests.NewClient(openS3(t, s.URL), remote.Policy{Attempts: 3, Backoff: time.Millisecond, Stall: 2 * time.Second, Total: 10 * time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			dst := make([]byte, n)
			err := c.ReadAt(ctx, remote.Object{Key: "x", Size: int64(len(object)), ETag: `"1"`}, off, dst)
			if err == nil && !bytes.Equal(dst, object[off:off+n]) {
				t.Error("wrong bytes, and no error")
			}
			all, _, allErr := c.ReadAll(ctx, "x", 1<<20)
			if allErr == nil && len(all) > 1<<20 {
				t.Errorf("%d bytes", len(all))
			}
			runtime.ReadMemStats(&after)
			if used := int64(after.TotalAlloc - before.TotalAlloc); used > 300<<20 {
				t.Errorf("%d bytes were allocated", used)
			}
			t.Logf("range: %v; whole: %v", err, allErr)
		})
	}
}

// A redirect to another host gets neither credentials nor an answer.
func TestRedirectsGetNoCredentials(t *testing.T) {
	t.Setenv("AWS_SESSION_TOKEN", "penstock-session-secret")
	var all sync.WaitGroup
	for _, code := range []int{301, 302, 303, 307, 308} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			t.Errorf("%d: another host was asked: %s %s %v", code, r.Method, r.URL, r.Header)
		}))
		defer other.Close()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+r.URL.Path, code)
		}))
		defer s.Close()
		c := requests.NewClient(openS3(t, s.URL), remote.Policy{Attempts: 1, Total: 10 * time.Second})
		for what, do := range map[string]func() error{
			"stat":   func() error { _, err := c.Stat(t.Context(), "x"); return err },
			"read":   func() error { _, _, err := c.ReadAll(t.Context(), "x", 1<<20); return err },
			"write":  func() error { return c.WriteAll(t.Context(), "x", []byte("private"), remote.WriteOptions{}) },
			"delete": func() error { return c.Delete(t.Context(), "x") },
			"list": func() (err error) {
				for _, err = range c.List(t.Context(), "", "") {
				}
				return err
			},
		} {
			all.Go(func() {
				if err := do(); err == nil || strings.Contains(err.Error(), "penstock-session-secret") {
					t.Errorf("%d: %s: %v", code, what, err)
				}
			})
		}
	}
	all.Wait()
}

// Listings that lack what each object has are errors.
func TestListingWithoutParts(t *testing.T) {
	for _, text := range []string{"<Contents><Key>a</Key></Contents>", "<Contents><Size>1</Size></Contents>", "<Contents></Contents>"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "<ListBucketResult>%s</ListBucketResult>", text)
		}))
		c := requests.NewClient(openS3(t, s.URL), remote.Policy{Attempts: 1})
		var err error
		for _, err = range c.List(t.Context(), "", "") {
		}
		if err == nil {
			t.Errorf("%s: no error", text)
		}
		s.Close()
	}
}

// A listing that never ends, as it begins again, is an error.
func TestListingThatRepeats(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken><Contents><Key>a</Key><Size>1</Size><LastModified>2020-01-01T00:00:00Z</LastModified><ETag>"1"</ETag></Contents></ListBucketResult>`)
	}))
	defer s.Close()
	c := requests.NewClient(openS3(t, s.URL), remote.Policy{})
	n := 0
	var err error
	for _, err = range c.List(t.Context(), "", "") {
		if n++; n > 10_000 {
			t.Fatal("more than 10,000 objects")
		}
	}
	if !errors.Is(err, remote.ErrInvalid) {
		t.Errorf("%d objects, %v", n, err)
	}
}
