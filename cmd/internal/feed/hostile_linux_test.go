package feed

import (
	"encoding/binary"

	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lying is a message with a length of its own choice.
func lying(length uint32, body string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, length), body...)
}

// Clients that do what they must not: each is refused or left alone, the others are served, and nothing stays
// of them.
func TestHostileClients(t *testing.T) {
	path := makeDataset(t, true)
	const hello = `{"hello":{"version":4,"options":{"batch_size":4}}}`
	start := `{"start":{"epoch":0,"step":0}}`
	send := func(messages ...string) func(c *client) {
		return func(c *client) {
			for _, m := range messages {
				if _, err := c.conn.Write(framed(m)); err != nil {
					return // it has been refused
				}
			}
		}
	}
	raw := func(b []byte) func(c *client) { return func(c *client) { _, _ = c.conn.Write(b) } }
	pass := func(name string) func(c *client) {
		return func(c *client) {
			f, err := os.Open(name)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			_, _, _ = c.conn.(*net.UnixConn).WriteMsgUnix(framed(`{"hello":{"version":4,"options":{"batch_size":4,"sampler":{"kind":"sequence"}}}}`), unix.UnixRights(int(f.Fd())), nil)
		}
	}
	const writeTimeout = 100 * time.Millisecond // of a client whose messages are not read
	attacks := map[string]func(c *client){
		"nothing":             func(c *client) {},
		"half a length":       raw([]byte{1, 2}),
		"4 GiB message":       raw(lying(1<<32-1, "{}")),
		"message cut short":   raw(lying(1<<20, `{"hello":`)),
		"empty message":       raw(lying(0, "")),
		"bytes of noise":      raw([]byte(strings.Repeat("\xff\x00\x1b", 5000))),
		"HTTP":                raw([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")),
		"nested JSON":         send(strings.Repeat("[", 500_000)),
		"nested hello":        send(`{"hello":` + strings.Repeat(`{"hello":`, 100_000)),
		"wrong version":       send(`{"hello":{"version":99,"options":{}}}`),
		"unknown option":      send(`{"hello":{"version":4,"options":{"batch_size":4,"path":"/etc/passwd"}}}`),
		"huge batch":          send(`{"hello":{"version":4,"options":{"batch_size":1073741824}}}`, start),
		"huge number":         send(`{"hello":{"version":4,"options":{"batch_size":1e999}}}`),
		"negative batch":      send(`{"hello":{"version":4,"options":{"batch_size":-1}}}`),
		"start first":         send(start),
		"two parts":           send(`{"stats":true,"start":{"epoch":0}}`),
		"hello twice":         send(hello, hello),
		"wrong identity":      send(hello, `{"start":{"epoch":0,"step":0,"seed":77,"records":1}}`),
		"start beyond":        send(hello, `{"start":{"epoch":-1,"step":-9}}`, `{"start":{"epoch":9223372036854775807,"step":9223372036854775807}}`),
		"release of nothing":  send(hello, `{"release":[0]}`),
		"release below":       send(hello, `{"release":[-1]}`),
		"release beyond":      send(hello, `{"release":[9223372036854775807]}`),
		"release twice":       send(hello, start, `{"release":[0,0,0]}`),
		"holds a slot below":  send(hello, `{"start":{"epoch":0,"step":0},"held":[-1]}`),
		"holds a slot beyond": send(hello, `{"start":{"epoch":0,"step":0},"held":[4]}`),
		"starts without end": func(c *client) {
			send(hello)(c)
			for range 2000 {
				send(start)(c)
			}
		},
		"stats, and no reading": func(c *client) {
			send(hello)(c)
			for range 20_000 {
				_ = c.conn.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
				if _, err := c.conn.Write(framed(`{"stats":true}`)); err != nil {
					return
				}
			}
		},
		"half closed":         func(c *client) { send(hello, start)(c); _ = c.conn.CloseWrite() },
		"a folder as numbers": pass("/"),
		"a device as numbers": pass("/dev/zero"),
		"process as numbers":  pass("/proc/self/mem"),
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	honest := dial(t.Context(), t, path)
	honest.greet(`{"batch_size":4}`)
	_ = honest.conn.SetDeadline(time.Now().Add(5 * time.Minute))
	var open []*client
	name := make(map[*client]string)
	for what, attack := range attacks {
		for range 2 {
			c := dial(t.Context(), t, path)
			_ = c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
			attack(c)
			open, name[c] = append(open, c), what
		}
	}
	for range 200 { // that send one byte, and wait
		c := dial(t.Context(), t, path)
		raw([]byte{7})(c)
		open = append(open, c)
	}
	// The honest one is served alongside all of them.
	honest.start()
	if r := honest.receive(); r.Batch == nil || r.Batch.Count != 4 {
		t.Fatalf("%+v", r)
	}
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapInuse) - int64(before.HeapInuse); used > 256<<20 {
		t.Errorf("%d bytes are in use for %d clients", used, len(open))
	}
	honest.conn.Close()
	for _, c := range append(open, honest) {
		c.conn.Close()
	}
	for _, c := range append(open, honest) {
		select {
		case <-c.served:
		case <-time.After(5 * time.Minute):
			t.Fatalf("the session of %q does not end with its client", name[c])
		}
	}
	for end := time.Now().Add(5 * time.Minute); runtime.NumGoroutine() > goroutines+4 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines+4 {
		t.Errorf("%d goroutines stay of %d sessions", n-goroutines, len(open))
	}
	t.Logf("%d attacks, %d clients", len(attacks)+1, len(open))
}
