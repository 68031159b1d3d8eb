package rawcache

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/transforms"
)

// Choice says whether the cache stores the image files of a source, or the pixels after the head of a pipeline.
type Choice struct {
	Source string `json:"source"`
	Field  string `json:"field"`
	Stored Mode   `json:"stored"` // Pixels or Encoded
	Why    string `json:"why"`    // a sentence
}

// choose decides what is stored, and makes src decode if pixels are stored. Auto stores pixels if
// they stay in memory after the first epoch, where reading them is faster than any decoder. The
// choice depends on nothing that other processes change, such as free space, so that all processes
// of a host choose the same.
func (o Options) choose(src *raw.Source) (*Choice, error) {
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
		c.Why, err = o.fits(src, head)
	}
	if err == nil {
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

// head returns the transforms whose results can be stored for a field.
func (o Options) head(field string) (*transforms.Pipeline, error) {
	if o.Head == nil {
		return nil, errors.New("it is not loaded by a pipeline")
	}
	return o.Head(field)
}

// sourceName returns the path or URL of a source in the form of Entry.Source.
func sourceName(src *raw.Source) string {
	path := src.Name()
	if abs, err := filepath.Abs(path); err == nil && !remote.IsURL(path) {
		return abs
	}
	return path
}

// memory returns the bytes of memory of this machine or container. Tests replace it.
var memory = usage.Memory

// fits returns the reason for storing pixels, or an error with the reason against it.
func (o Options) fits(src *raw.Source, head *transforms.Pipeline) (string, error) {
	total, err := src.PixelBytes(head)
	if err != nil {
		return "", err
	}
	if o.Limit > 0 && total > o.Limit {
		return "", fmt.Errorf("pixels would take %s, more than the size of the cache", units.Bytes(total))
	}
	if has := memory(); has > 0 && total > has/2 {
		return "", fmt.Errorf(`pixels would take %s, more than half of the memory; prepare="pixels" stores them`,
			units.Bytes(total))
	}
	return fmt.Sprintf("all pixels take %s, and stay in memory after they were read", units.Bytes(total)), nil
}
