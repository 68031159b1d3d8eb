package prepare

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/penstock/penstock/prepare/internal/commit/part"
)

// heartbeat is a Progress that leaves signs of how far a rank is, for preprocess status. That one cannot be written
// is no error of the run.
type heartbeat struct {
	Progress
	put    func(text []byte) error
	bucket bool
	begin  time.Time
	stop   chan struct{}
	ended  sync.WaitGroup

	mu      sync.Mutex
	sign    part.Sign
	resumed int64 // samples of a process before this one
	first   bool
}

// newHeartbeat begins to leave signs: in the folder of the parts, or where c says.
func newHeartbeat(c Config, turn *part.Turn, p Progress) *heartbeat {
	host, _ := os.Hostname()
	h := &heartbeat{Progress: p, put: c.putSign, bucket: c.putSign != nil, begin: time.Now(), stop: make(chan struct{})}
	h.sign = part.Sign{Rank: c.Rank.Index, Size: c.Rank.Size, Host: host, PID: os.Getpid(), Of: -1}
	every := part.BucketSignEvery
	if !h.bucket {
		every = part.SignEvery
		h.put = part.WriteSign(part.Folder(c.Dest), part.SignName(c.Rank, turn.ID()))
		h.write("")
	}
	h.ended.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				h.write("")
			case <-h.stop:
				return
			}
		}
	})
	return h
}

// Begin implements Progress. The last stage counts: the others look at the source.
func (h *heartbeat) Begin(what string, total int64, unit string) {
	h.mu.Lock()
	h.sign.Of, h.sign.Samples, h.resumed, h.first = total, 0, 0, true
	h.mu.Unlock()
	h.Progress.Begin(what, total, unit)
}

// Add implements Progress. The first number of a stage counts the work of an earlier process.
func (h *heartbeat) Add(n int64) {
	h.mu.Lock()
	h.sign.Samples += n
	if h.first && h.sign.Of >= 0 {
		h.resumed = n
	}
	h.first = false
	h.mu.Unlock()
	h.Progress.Add(n)
}

// write writes the sign of life of a rank. Its errors are dropped: a run must not end because its report could not be
// written.
func (h *heartbeat) write(failure string) {
	h.mu.Lock()
	s := h.sign
	s.Here, s.Time, s.Seconds, s.Error = s.Samples-h.resumed, time.Now(), time.Since(h.begin).Seconds(), failure
	h.mu.Unlock()
	if text, err := json.Marshal(s); err == nil {
		_ = h.put(text)
	}
}

// end writes the last sign, or removes it if the part is published.
func (h *heartbeat) end(err error) {
	close(h.stop)
	h.ended.Wait()
	switch {
	case err != nil:
		h.write(err.Error())
	case h.bucket:
		h.write("") // it is removed when the part is sent
	default:
		_ = h.put(nil)
	}
}
