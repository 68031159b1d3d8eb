package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// queue sends files to a bucket, several at a time. The first error ends the queue.
type queue struct {
	client *requests.Client
	ctx    context.Context
	cancel context.CancelFunc
	sent   func(bytes int64) // called by one goroutine at a time

	mu      sync.Mutex
	change  *sync.Cond
	waiting []item
	left    int64 // bytes that wait or are on their way
	ended   bool
	err     error
	wg      sync.WaitGroup
}

// item is a file to be sent.
type item struct {
	path, key string
	size      int64
	crc       string // that the file must have; "" where it is not known yet
	keep      bool   // keep the file after it is sent; otherwise a marker takes its place
}

func newQueue(ctx context.Context, c *requests.Client, workers int, sent func(int64)) *queue {
	s := &queue{client: c, sent: sent}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.change = sync.NewCond(&s.mu)
	for range workers {
		s.wg.Go(s.work)
	}
	return s
}

// put adds a file to the queue. It does not wait, see settle.
func (s *queue) put(p item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.waiting = append(s.waiting, p)
	s.left += p.size
	s.change.Broadcast()
}

// settle waits until at most that many bytes are left to be sent, or the queue has failed. A build that is faster than
// the link calls it, so that the disk does not fill with files that wait.
func (s *queue) settle(most int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && s.left > most {
		s.change.Wait()
	}
	return s.err
}

// failed returns the error that has ended the queue, if any.
func (s *queue) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// close ends the queue: files that are not sent are given up, and requests that run are cancelled. It returns after the
// last worker.
func (s *queue) close() {
	s.mu.Lock()
	s.ended = true
	s.change.Broadcast()
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
}

func (s *queue) work() {
	for {
		p, ok := s.next()
		if !ok {
			return
		}
		s.done(p, s.send(p))
	}
}

// next waits for a file to send; false means that no more files will come.
func (s *queue) next() (p item, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 && !s.ended && s.err == nil {
		s.change.Wait()
	}
	if s.ended || s.err != nil {
		return p, false
	}
	p = s.waiting[0]
	s.waiting = s.waiting[1:]
	return p, true
}

// done takes the result of an item. After the first error the context is cancelled, and the rest of the queue is
// dropped.
func (s *queue) done(p item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left -= p.size
	switch {
	case err == nil:
		s.sent(p.size)
	case s.err == nil:
		s.err = err
		s.cancel()
	}
	s.change.Broadcast()
}

// send sends a file. If the file was sent before, send makes sure that the object still exists, and gives it the key
// that it has now.
func (s *queue) send(p item) error {
	if was, ok := readMarker(p.path); ok {
		if p.crc != "" && p.crc != was.CRC32C {
			return fmt.Errorf("%s was sent with the CRC32C %s, and not %s: %w; %w", s.client.Name(was.Key), was.CRC32C, p.crc,
				store.ErrCorrupt, ErrLost)
		}
		return s.move(p, was)
	}
	crc, err := sendFile(s.ctx, s.client, p.path, p.key, remote.WriteOptions{PartBytes: partBytes, Parts: partsAtOnce})
	if err == nil && p.crc != "" && p.crc != crc {
		err = fmt.Errorf("%s has the CRC32C %s, and not %s with which it was written: %w", p.path, crc, p.crc,
			store.ErrCorrupt)
	}
	if err != nil || p.keep {
		return err
	}
	return s.replace(p.path, marker{Key: p.key, Size: p.size, CRC32C: crc})
}

// replace puts a marker in the place of a file, with the ETag of the object that was sent. The size is compared first:
// with the marker in place, the bytes of the file are no longer on this machine.
func (s *queue) replace(path string, new marker) error {
	o, err := s.client.Stat(s.ctx, new.Key)
	if err != nil {
		return err
	}
	if o.Size != new.Size {
		return fmt.Errorf("%s has %d bytes, and not the %d that were sent", s.client.Name(new.Key), o.Size, new.Size)
	}
	new.ETag = o.ETag
	return new.replace(path)
}

// move gives an object that was sent the key that it has in the dataset, by a copy within the bucket. If the object is
// not the version that was sent, its bytes are compared: another process that made the same file may have sent it, too.
func (s *queue) move(p item, was marker) error {
	o, err := s.client.Stat(s.ctx, was.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && o.Size != was.Size:
		return lost(s.client.Name(was.Key))
	case err != nil:
		return err
	case o.ETag != was.ETag:
		// Another process may have made it, too.
		if err := SameObject(s.ctx, s.client, o, was.CRC32C); err != nil {
			return err
		}
	}
	if p.key == was.Key && o.ETag == was.ETag {
		return nil
	}
	if p.key != was.Key {
		if err := s.client.Copy(s.ctx, was.Key, p.key); err != nil {
			return err
		}
		was.Key = p.key
	}
	return s.replace(p.path, was)
}

// Sizes of the parts of a file that is sent. A file takes the memory of one part more than are sent at a time.
const (
	partBytes   = 5 << 20 // the least that S3 takes
	partsAtOnce = 4
)

// ErrLost says that a file can neither be completed nor sent.
var ErrLost = errors.New("start over, without --resume")

// lost is the error of a file of which only a marker is left on this machine, and no object in the bucket.
func lost(name string) error {
	return fmt.Errorf("%s, which was sent, is not there any more; %w", name, ErrLost)
}

// SameObject reads an object and compares its CRC32C. An ETag does not tell: two uploads of the same bytes may have
// different ones.
func SameObject(ctx context.Context, c *requests.Client, o remote.Object, crc string) error {
	r := c.NewReader(ctx, o, 0, -1)
	defer r.Close()
	var sent layout.CRCWriter
	if _, err := io.Copy(&sent, r); err != nil {
		return err
	}
	if layout.HexCRC(sent.Sum) != crc {
		return fmt.Errorf("%s was sent, and has been replaced by other bytes; %w", c.Name(o.Key), ErrLost)
	}
	return nil
}

// CRCOf returns the CRC32C of a file's bytes.
func CRCOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var crc layout.CRCWriter
	_, err = io.Copy(&crc, f)
	return layout.HexCRC(crc.Sum), err
}

// sendFile sends one file and returns the CRC32C of the bytes that were sent. They are summed while they are read for
// the request, so that a file that changes meanwhile is noticed. A request that is repeated reads the file again, from
// a new sum.
func sendFile(ctx context.Context, c *requests.Client, path, key string, opts remote.WriteOptions) (crc string,
	err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	var sent layout.CRCWriter
	err = c.WriteFrom(ctx, key, info.Size(), func() (io.ReadCloser, error) {
		f, err := os.Open(path)
		sent.Sum = 0
		return struct {
			io.Reader
			io.Closer
		}{io.TeeReader(f, &sent), f}, err
	}, opts)
	return layout.HexCRC(sent.Sum), err
}
