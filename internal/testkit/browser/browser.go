// Package browser opens pages in a headless Chromium, for tests of pages. It speaks the DevTools
// protocol over two pipes, so that it needs neither a port nor a library.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// ErrMissing says that there is no Chromium, or none that starts here.
var ErrMissing = errors.New("no Chromium that runs here (Debian: apt-get install chromium)")

// names are what Chromium is called.
var names = []string{"chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Browser is a running Chromium. It serves one goroutine at a time.
type Browser struct {
	cmd     *exec.Cmd
	dir     string // of its files
	in      *os.File
	last    int
	events  chan message // closed when Chromium ends
	session string
	stop    context.CancelFunc
	closing sync.Once
	err     error
}

// message is one of the protocol, to or from Chromium.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
	raw json.RawMessage // params of an event
}

// Start starts a Chromium, which ends with ctx or Close, or returns an ErrMissing. It runs without
// its sandbox, which root and many containers cannot have: give it pages of your own only.
func Start(ctx context.Context) (*Browser, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "penstock-browser-*")
	if err != nil {
		return nil, err
	}
	b, err := start(ctx, path, dir)
	if err != nil {
		return nil, errors.Join(err, remove(dir))
	}
	if err := b.attach(); err != nil {
		return nil, err
	}
	return b, nil
}

// flags are how Chromium is run, but for where it keeps its files.
var flags = []string{"--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"}

// start runs the program, which keeps its files in dir, and what it complains of too.
func start(ctx context.Context, path, dir string) (*Browser, error) {
	said, err := os.Create(complaints(dir))
	if err != nil {
		return nil, err
	}
	defer said.Close() // Chromium has it as its own
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), ourOut.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	b := &Browser{dir: dir, in: ourOut, events: make(chan message, 1024), stop: stop}
	b.cmd = exec.CommandContext(ctx, path, append(slices.Clone(flags), "--user-data-dir="+dir, "about:blank")...)
	b.cmd.Dir = dir
	b.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir, "TMPDIR=.") // names of sockets must be short
	b.cmd.Stderr = said
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	err = errors.Join(b.cmd.Start(), theirIn.Close(), theirOut.Close())
	if err != nil {
		stop()
		return nil, errors.Join(err, ourIn.Close(), ourOut.Close())
	}
	go b.read(ourIn)
	return b, nil
}

// complaints is the file of what Chromium writes to stderr.
func complaints(dir string) string { return filepath.Join(dir, "stderr.txt") }

func find() (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrMissing
}

// errEnded says that Chromium is not there any more.
var errEnded = errors.New("Chromium ended")

// read takes what Chromium says: JSON, each message ended by a zero byte.
func (b *Browser) read(from *os.File) {
	defer close(b.events)
	defer from.Close()
	for r := bufio.NewReaderSize(from, 1<<20); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			message
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(text[:len(text)-1], &m) == nil {
			m.message.raw = m.Params
			b.events <- m.message
		}
	}
}

// call sends a command and waits for its answer; events that come before it go to see.
func (b *Browser) call(method string, params, result any, see func(message)) error {
	b.last++
	id := b.last
	text, err := json.Marshal(message{ID: id, Session: b.session, Method: method, Params: params})
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return fmt.Errorf("browser: %s: %w: %w", method, errEnded, err)
	}
	m, err := b.until(see, func(m message) bool { return m.ID == id })
	switch {
	case err != nil:
		return fmt.Errorf("browser: %s: %w", method, err)
	case m.Error != nil:
		return fmt.Errorf("browser: %s: %s", method, m.Error.Message)
	case result == nil:
		return nil
	}
	return json.Unmarshal(m.Result, result)
}

// until hands messages to see up to the one that is waited for.
func (b *Browser) until(see func(message), is func(message) bool) (message, error) {
	const longest = 2 * time.Minute // a busy machine takes long to start it
	timer := time.NewTimer(longest)
	defer timer.Stop()
	for {
		select {
		case m, ok := <-b.events:
			if !ok {
				return m, errEnded
			}
			if see != nil {
				see(m)
			}
			if is(m) {
				return m, nil
			}
		case <-timer.C:
			return message{}, fmt.Errorf("no answer for %v", longest)
		}
	}
}

// attach opens a tab, which all pages are shown in. A Chromium that ends before it has one cannot
// run here.
func (b *Browser) attach() error {
	var target struct {
		ID string `json:"targetId"`
	}
	var session struct {
		ID string `json:"sessionId"`
	}
	err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target, nil)
	if err == nil {
		err = b.call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &session, nil)
	}
	b.session = session.ID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err == nil {
			err = b.call(domain+".enable", nil, nil, nil)
		}
	}
	if err == nil {
		err = b.call("Page.setLifecycleEventsEnabled", map[string]any{"enabled": true}, nil, nil)
	}
	if errors.Is(err, errEnded) {
		said, _ := os.ReadFile(complaints(b.dir)) // nothing, if it cannot be read
		err = fmt.Errorf("%w: %s: %w: %.1000s", ErrMissing, b.cmd.Path, err, said)
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	return nil
}

// Close ends Chromium and removes its files.
func (b *Browser) Close() error {
	b.closing.Do(func() {
		b.err = b.in.Close()
		b.stop()
		for range b.events { // until it has ended
		}
		_ = b.cmd.Wait() // it was killed
		b.err = errors.Join(b.err, remove(b.dir))
	})
	return b.err
}

// remove removes the folder of a Chromium that was killed. Its helpers end a little later than
// it, and may write there until then.
func remove(dir string) (err error) {
	for range 100 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
