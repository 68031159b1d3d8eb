package s3test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Link is a network between a client and a server: toxiproxy with toxics.
type Link struct {
	Address string
	proxy   *toxiproxy.Proxy
}

// NewLink begins a link to an upstream address, which ends with the test.
func NewLink(t testing.TB, upstream string) *Link {
	t.Helper()
	l, err := listen(upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Stop)
	return l
}

func listen(upstream string) (*Link, error) {
	log := zerolog.Nop()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), log)
	l := &Link{proxy: toxiproxy.NewProxy(server, "link", "127.0.0.1:0", upstream)}
	err := l.proxy.Start()
	l.Address = l.proxy.Listen
	return l, err
}

// AddSome puts a toxic on what comes from the server, for a part of all connections: its JSON
// attributes are toxiproxy's.
func (l *Link) AddSome(t testing.TB, name, kind string, part float64, attributes string) {
	t.Helper()
	if err := l.add(name, kind, part, attributes); err != nil {
		t.Fatal(err)
	}
}

func (l *Link) add(name, kind string, part float64, attributes string) error {
	text := fmt.Sprintf(`{"name": %q, "type": %q, "stream": "downstream", "toxicity": %g, "attributes": %s}`, name, kind,
		part, attributes)
	_, err := l.proxy.Toxics.AddToxicJson(bytes.NewBufferString(text))
	return err
}

// shape gives the link a round trip time and, over all connections of all links of the process,
// a rate in bytes a second.
func (l *Link) shape(roundTrip time.Duration, rate int64) error {
	return errors.Join(
		l.add("rate", sharedName, 1, fmt.Sprintf(`{"rate": %d}`, rate)),
		l.add("latency", "latency", 1, fmt.Sprintf(`{"latency": %d}`, roundTrip.Milliseconds())))
}

const sharedName = "shared_bandwidth"

// shared is a bandwidth that all connections share: toxiproxy's own is one of each.
type shared struct {
	Rate int64 `json:"rate"` // bytes a second

	mu   sync.Mutex
	free time.Time // when the line is free again
}

var lines sync.Map // by rate: toxics are copied for each connection

func (s *shared) line() *shared {
	l, _ := lines.LoadOrStore(s.Rate, &shared{Rate: s.Rate})
	return l.(*shared)
}

// reserve returns when the last of n bytes is through.
func (s *shared) reserve(n int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.free.Before(now) {
		s.free = now
	}
	s.free = s.free.Add(time.Duration(n) * time.Second / time.Duration(s.Rate))
	return s.free
}

// Pipe passes data through when the line has room for it.
func (s *shared) Pipe(stub *toxics.ToxicStub) {
	line := s.line()
	for {
		select {
		case <-stub.Interrupt:
			return
		case p := <-stub.Input:
			if p == nil {
				stub.Close()
				return
			}
			if wait := time.Until(line.reserve(len(p.Data))); wait > time.Millisecond {
				time.Sleep(wait)
			}
			stub.Output <- p
		}
	}
}

// GetBufferSize is how many chunks may wait.
func (s *shared) GetBufferSize() int { return 1024 }

func init() { toxics.Register(sharedName, new(shared)) }
