package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/penstock/penstock/remote"
)

// hub is the files of a dataset of the Hugging Face Hub, all from one commit: the commit that the
// revision names at the first request. A revision such as main may move while a reader is at work.
// See https://huggingface.co/docs/hub/api.
type hub struct {
	name     string   // as in the URL
	endpoint *url.URL // HF_ENDPOINT
	dataset  string   // NAME, such as owner/name
	revision string
	token    string
	from     string // where the token comes from, for errors
	site     *site

	// mu guards commit, which is "" before the first request, and trees, the listings by prefix and
	// delimiter.
	mu     sync.Mutex
	commit string
	trees  map[string]*tree
}

// defaultEndpoint is the Hub's address unless HF_ENDPOINT is set.
const defaultEndpoint = "https://huggingface.co"

// newHub reads the settings that huggingface_hub reads, HF_ENDPOINT and the token, so that what
// works in Python works here.
func newHub(u *remote.URL, s *site) (*hub, error) {
	h := &hub{name: u.Name(), site: s, trees: make(map[string]*tree)}
	name, revision, _ := strings.Cut(strings.TrimPrefix(u.Bucket, "datasets/"), "@")
	h.dataset, h.revision = name, cmp.Or(revision, "main")
	if len(u.Query) > 0 {
		return nil, errors.New("hf:// takes no options; the endpoint is HF_ENDPOINT, and the token HF_TOKEN")
	}
	var err error
	text := cmp.Or(os.Getenv("HF_ENDPOINT"), defaultEndpoint)
	if h.endpoint, err = url.Parse(strings.TrimRight(text, "/")); err != nil || h.endpoint.Host == "" ||
		!strings.HasPrefix(h.endpoint.Scheme, "http") {
		return nil, fmt.Errorf("HF_ENDPOINT=%s is not like %s", remote.Redact(text), defaultEndpoint)
	}
	h.token, h.from, err = hubToken()
	return h, err
}

// hubToken returns the user's token and where it comes from, in the order of Hugging Face's own
// library.
func hubToken() (token, from string, err error) {
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if token = strings.TrimSpace(os.Getenv(name)); token != "" {
			return token, name, checkToken(token, name)
		}
	}
	path := os.Getenv("HF_TOKEN_PATH")
	if path == "" {
		home, _ := os.UserHomeDir()
		cache := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
		path = filepath.Join(cmp.Or(os.Getenv("HF_HOME"), filepath.Join(cache, "huggingface")), "token")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", nil // most datasets are public
	}
	token = strings.TrimSpace(string(text))
	return token, path, checkToken(token, path)
}

// checkToken returns an error for a token that would not be a valid header.
func checkToken(token, from string) error {
	if len(token) > 1000 || strings.ContainsFunc(token, func(c rune) bool { return c < '!' || c > '~' }) {
		return fmt.Errorf("the token of %s has characters that no token has", from)
	}
	return nil
}

func (h *hub) String() string { return h.name }

// tag is the commit: files in a commit do not change.
func (h *hub) tag(_ http.Header, size int64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("commit %s, %d bytes", h.commit, size)
}

// request asks for a file at the pinned commit.
func (h *hub) request(ctx context.Context, key string) (*http.Request, error) {
	commit, err := h.pin(ctx)
	if err != nil {
		return nil, err
	}
	return h.ask(ctx, h.endpoint.JoinPath("datasets", h.dataset, "resolve", commit, escape(key)))
}

// escape turns a key into a path for JoinPath, in which ".." stays a name.
func escape(key string) string { return (&url.URL{Path: key}).EscapedPath() }

// ask returns a request with the token.
func (h *hub) ask(ctx context.Context, at *url.URL) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err == nil && h.token != "" {
		r.Header.Set("Authorization", "Bearer "+h.token)
	}
	return r, err
}

// commitForm matches the id of a commit.
var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

// pin returns the commit, and finds it at the first call.
func (h *hub) pin(ctx context.Context) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.commit != "":
	case commitForm.MatchString(h.revision):
		h.commit = h.revision
	default:
		at := h.endpoint.JoinPath("api/datasets", h.dataset, "revision", url.PathEscape(h.revision))
		at.RawQuery = "expand%5B%5D=sha"
		var info struct {
			SHA string `json:"sha"`
		}
		if _, err := h.json(ctx, "open", at, &info); err != nil {
			return "", err
		}
		if !commitForm.MatchString(info.SHA) {
			return "", h.wrong("open", fmt.Errorf("the revision %.60q is the commit %.60q", h.revision, info.SHA))
		}
		h.commit = info.SHA
	}
	return h.commit, nil
}

// maxJSON bounds the bytes of an answer of the API.
const maxJSON = 64 << 20

// json reads an answer of the API, and returns its header.
func (h *hub) json(ctx context.Context, op string, at *url.URL, into any) (http.Header, error) {
	b := &bucket{h, h.site}
	r, err := h.ask(ctx, at)
	if err != nil {
		return nil, err
	}
	a, err := h.site.client.Do(r)
	if err != nil {
		return nil, b.failed(ctx, op, "", err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return nil, b.refused(a, op, "")
	}
	data, err := io.ReadAll(io.LimitReader(a.Body, maxJSON+1))
	if err != nil {
		return nil, b.failed(ctx, op, "", err)
	}
	if len(data) > maxJSON {
		return nil, h.wrong(op, fmt.Errorf("the answer has more than %d bytes", maxJSON))
	}
	if err := json.Unmarshal(data, into); err != nil {
		return nil, h.wrong(op, fmt.Errorf("the answer is not one of the Hub: %w", err))
	}
	return a.Header, nil
}

// wrong returns the error of an answer that makes no sense, with the endpoint, which may be a
// mirror.
func (h *hub) wrong(op string, err error) error {
	return remote.NewError(op, h.name, remote.ErrInvalid, fmt.Errorf("%w (endpoint %s)", err, h.endpoint.Host))
}

// explain says what the Hub's error codes mean, and which token was sent.
func (h *hub) explain(a *http.Response, kind error) (todo string, _ error) {
	token := "no token was sent: set HF_TOKEN, or run hf auth login"
	if h.token != "" {
		token = "the token of " + h.from + " was sent"
	}
	if !sameOrigin(a.Request.URL, h.endpoint) {
		return fmt.Sprintf("of %s, to which the answer led", a.Request.URL.Host), kind
	}
	at := " (endpoint " + h.endpoint.Host + ")"
	switch a.Header.Get("X-Error-Code") {
	case "EntryNotFound":
		return "the dataset has no such file in this revision" + at, remote.ErrNotFound
	case "RevisionNotFound":
		return fmt.Sprintf("the dataset has no revision %q", h.revision) + at, remote.ErrNotFound
	case "RepoNotFound":
		return "there is no such dataset, or it is private; " + token + at, remote.ErrNoBucket
	case "GatedRepo":
		return fmt.Sprintf("accept its terms at %s; ", h.endpoint.JoinPath("datasets", h.dataset)) + token,
			remote.ErrPermission
	}
	if kind == remote.ErrPermission {
		return token + at, kind
	}
	return "", kind
}
