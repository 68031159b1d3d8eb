package rawcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/transforms"
)

// choices is a folder of the cache, with the choices of Auto. Each is a file, whose name is a digest of the source and
// of the transforms that could be done ahead. It is written once, so that all processes take the same.
const choices = "choices"

// Choice says whether the cache stores the image files of a source, or the pixels after the head of a pipeline.
type Choice struct {
	Source     string          `json:"source"`
	Field      string          `json:"field"`
	Transforms json.RawMessage `json:"transforms,omitempty"` // of the pixels, as an Entry has them
	Stored     Mode            `json:"stored"`               // Pixels or Encoded
	Why        string          `json:"why"`                  // a sentence

	Records int64 `json:"records"`           // of the source when it was chosen
	NoRoom  bool  `json:"no_room,omitempty"` // files are stored because pixels had no room
	Files   Price `json:"files"`
	Pixels  Price `json:"pixels"`
	key     string
}

// Price has the cost of one record, on average.
type Price struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"` // from the cache to pixels in memory, where all cores decode
}

func (p Price) String() string {
	return fmt.Sprintf("%s and %.3g ms", units.Bytes(p.Bytes), 1e3*p.Seconds)
}

// Of a measurement.
const (
	mostMeasured = 64
	measureLimit = 250 * time.Millisecond
	retryChoice  = 10 * time.Millisecond // while another process measures
	waitChoice   = 5 * time.Second
)

// choose decides what is stored, and has src give pixels if it is these.
func (o Options) choose(ctx context.Context, src *raw.Source) (*Choice, error) {
	if o.Mode == Encoded {
		return nil, nil
	}
	c := &Choice{Source: sourceName(src), Stored: Pixels, Why: `prepare is "pixels"`}
	var head *transforms.Pipeline
	var err error
	if c.Field, err = src.ImageField(); err == nil {
		head, err = o.head(c.Field)
	}
	if err == nil && o.Mode == Auto {
		err = c.decide(ctx, src, head, o)
	}
	if err == nil && c.Stored == Pixels {
		err = src.Decode(head)
	}
	switch {
	case err == nil:
		return c, nil
	case o.Mode == Auto:
		c.Stored, c.Why = Encoded, err.Error()
		return c, nil
	}
	return nil, fmt.Errorf(`source %s: there is no fixed result to store, as prepare="pixels" asks for: %w; or `+
		`give prepare="encoded", which stores files`, src.Name(), err)
}

func (o Options) head(field string) (*transforms.Pipeline, error) {
	if o.Head == nil {
		return nil, errors.New("it is not loaded by a pipeline")
	}
	return o.Head(field)
}

// sourceName returns the source as entries name it.
func sourceName(src *raw.Source) string {
	path := src.Name()
	if abs, err := filepath.Abs(path); err == nil && !remote.IsURL(path) {
		return abs
	}
	return path
}

// decide reads what was chosen, or measures and writes it.
func (c *Choice) decide(ctx context.Context, src *raw.Source, head *transforms.Pipeline, o Options) error {
	text, err := json.Marshal([]any{c.Source, c.Field, head})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	c.key = hex.EncodeToString(sum[:8])
	folder, err := choicesIn(o.Dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	held, err := lockChoice(ctx, folder, c.key)
	if err != nil {
		return err
	}
	defer held.Close()
	if !c.read(folder, src.Samples()) || c.NoRoom && roomLack(folder, c.Pixels.Bytes*src.Samples(), o.Limit) == "" {
		if err := c.measure(ctx, src, head, folder, o.Limit); err != nil {
			return err
		}
		if err := c.write(folder); err != nil {
			return err
		}
	}
	if total := c.Pixels.Bytes * src.Samples(); c.Stored == Pixels && o.Limit > 0 && total > o.Limit {
		c.Stored, c.Why = Encoded, tooLarge(total, "the size of the cache") // the next may be larger
	}
	return nil
}

// choicesIn opens the folder of choices, which it makes if it is not there.
func choicesIn(dir string) (*os.Root, error) {
	folder, err := Folder(dir)
	if err != nil {
		return nil, err
	}
	parent, name, err := private.Parent(filepath.Join(folder, choices))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return private.Make(parent, name)
}

// lockChoice waits until no other process measures.
func lockChoice(ctx context.Context, folder *os.Root, key string) (*os.File, error) {
	f, err := private.OpenLock(folder, key+".lock")
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(waitChoice); ; {
		err := lock(f, exclusive)
		switch {
		case err == nil:
			return f, nil
		case ctx.Err() != nil || time.Now().After(end):
			return nil, errors.Join(fmt.Errorf("another process is measuring: %w", err), f.Close())
		}
		time.Sleep(retryChoice)
	}
}

// read reads what was chosen. It reports false if nothing was, or of a source that has at least doubled since.
func (c *Choice) read(folder *os.Root, records int64) bool {
	text, err := private.ReadFile(folder, c.key+".json", folder)
	var found Choice
	if err != nil || json.Unmarshal(text, &found) != nil || found.Source != c.Source || found.Field != c.Field ||
		found.Stored != Pixels && found.Stored != Encoded || records >= 2*found.Records {
		return false
	}
	found.key = c.key
	*c = found
	return true
}

func (c *Choice) write(folder *os.Root) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return private.Replace(folder, c.key+".json", 0o600, text)
}

// measure finds the prices, and chooses by them: pixels if they are smaller, or faster to read, and have room.
func (c *Choice) measure(ctx context.Context, src *raw.Source, head *transforms.Pipeline, folder *os.Root,
	limit int64) error {
	cost, err := src.Measure(ctx, head, mostMeasured, measureLimit)
	if err != nil {
		return err
	}
	n := int64(cost.Records)
	c.Transforms, c.Records = cost.Transforms, src.Samples()
	c.Files.Bytes, c.Pixels.Bytes = cost.FileBytes/n, cost.PixelBytes/n
	rates := rates{folder: folder}
	read := func(bytes int64) (float64, error) {
		rate, err := rates.of(bytes * c.Records)
		return float64(bytes) / rate, err
	}
	if c.Files.Seconds, err = read(c.Files.Bytes); err != nil {
		return err
	}
	c.Files.Seconds += cost.Decoding.Seconds() / float64(n) / float64(runtime.GOMAXPROCS(0))
	if c.Pixels.Seconds, err = read(c.Pixels.Bytes); err != nil {
		return err
	}
	c.Stored, c.Why = Encoded, roomLack(folder, c.Pixels.Bytes*c.Records, limit)
	c.NoRoom = c.Why != ""
	switch {
	case c.NoRoom:
	case c.Pixels.Bytes < c.Files.Bytes || c.Pixels.Seconds < c.Files.Seconds:
		c.Stored = Pixels
		c.Why = fmt.Sprintf("a record of pixels takes %v, and its file %v", c.Pixels, c.Files)
	default:
		c.Why = fmt.Sprintf("a file takes %v, and its pixels %v", c.Files, c.Pixels)
	}
	return nil
}

// roomLack returns why pixels of that size have no room; "" if they have.
func roomLack(folder *os.Root, total, limit int64) string {
	if limit > 0 && total > limit {
		return tooLarge(total, "the size of the cache")
	}
	if free, known := usage.FreeSpace(folder.Name()); known && total > free/2 {
		return tooLarge(total, "half of the free space")
	}
	return ""
}

func tooLarge(total int64, room string) string {
	return fmt.Sprintf("pixels would take %s, more than %s", units.Bytes(total), room)
}

// failed has later runs store files, if what the command said is that pixels cannot be made.
func (c *Choice) failed(dir string, err error) {
	said := refusal("")
	if !errors.As(err, &said) || strings.Contains(string(said), "were changed while") {
		return
	}
	folder, err := choicesIn(dir)
	if err != nil {
		return // the warning was about that
	}
	defer folder.Close()
	next := *c
	next.Stored, next.Why = Encoded, "pixels could not be prepared: "+string(said)
	_ = next.write(folder) // else the next run tries pixels again
}

// choicesOf returns the choices by which an entry is stored as it is.
func choicesOf(e *Entry) (list []Choice) {
	_ = eachChoice(e, func(_ *os.Root, _ string, c Choice) error { // without the folder there are none
		list = append(list, c)
		return nil
	})
	return list
}

// Forget removes the choices by which an entry is stored as it is, so that it is chosen again.
func Forget(e *Entry) error {
	return eachChoice(e, func(folder *os.Root, name string, _ Choice) error { return folder.Remove(name) })
}

// eachChoice calls f with the choices for an entry.
func eachChoice(e *Entry, f func(folder *os.Root, name string, c Choice) error) error {
	parent, name, err := private.Parent(filepath.Join(filepath.Dir(e.Path), choices))
	if err != nil {
		return err
	}
	defer parent.Close()
	folder, err := private.Open(parent, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	names, err := private.Entries(folder)
	for _, name := range names {
		var c Choice
		text, unread := private.ReadFile(folder, name, folder)
		if unread == nil && strings.HasSuffix(name, ".json") && json.Unmarshal(text, &c) == nil && c.isOf(e) {
			err = errors.Join(err, f(folder, name, c))
		}
	}
	return err
}

// isOf reports whether a choice is for an entry.
func (c *Choice) isOf(e *Entry) bool {
	return c.Source == e.Source && (c.Stored == Pixels && bytes.Equal(c.Transforms, e.Transforms) ||
		c.Stored == Encoded && e.Transforms == nil)
}
