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

// Link is a network between a client and a server: a proxy of toxiproxy, whose "toxics" delay,
// limit or break what passes through. Address is where clients connect.
type Link struct {
	Address string
	proxy   *toxiproxy.Proxy
}

// NewLink begins a link to an upstream address. The link ends with the test.
func NewLink(t testing.TB, upstream string) *Link {
	t.Helper()
	l, err := listen(upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Stop)
	return l
}

// listen begins a link on a free port of this machine.
func listen(upstream string) (*Link, error) {
	log := zerolog.Nop()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), log)
	l := &Link{proxy: toxiproxy.NewProxy(server, "link", "127.0.0.1:0", upstream)}
	err := l.proxy.Start()
	l.Address = l.proxy.Listen
	return l, err
}

// AddSome adds a toxic to the data from the server, for the share part of all connections. kind and
// the JSON attributes are toxiproxy's.
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

// sharedName is the name under which the toxic shared is registered.
const sharedName = "shared_bandwidth"

// shared limits the bandwidth of all connections together, as a network interface does. toxiproxy's
// own toxic "bandwidth" limits each connection, which would make many connections look faster than
// they are.
type shared struct {
	Rate int64 `json:"rate"` // bytes a second

	mu   sync.Mutex
	free time.Time // when the line is free again
}

// lines has one shared per rate. toxiproxy copies a toxic for each connection, so the copies find
// their common state here.
var lines sync.Map // by rate: toxics are copied for each connection

// line returns the state that all connections of this rate share.
func (s *shared) line() *shared {
	l, _ := lines.LoadOrStore(s.Rate, &shared{Rate: s.Rate})
	return l.(*shared)
}

// reserve takes the line for n bytes and returns when the last of them has passed.
func (s *shared) reserve(n int) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.free.Before(now) {
		s.free = now
	}
	s.free = s.free.Add(time.Duration(n) * time.Second / time.Duration(s.Rate))
	return s.free
}

// Pipe implements toxics.Toxic: it passes data on when the line has had time to carry them.
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

// GetBufferSize returns how many chunks may wait for the line.
func (s *shared) GetBufferSize() int { return 1024 }

func init() { toxics.Register(sharedName, new(shared)) }
