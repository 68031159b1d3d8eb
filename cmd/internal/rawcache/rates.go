package rawcache

import (
	"crypto/rand"
	"errors"
	"os"
	"time"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/sys/usage"
)

// rates measures how many bytes a second are read from a folder.
type rates struct {
	folder *os.Root
	disk   float64 // 0: not measured
	memory float64
}

// tried is how many bytes are read for that.
const tried = 8 << 20

// of returns the rate for a dataset of that size: of a small one, that of memory, which it stays in after it was read.
func (r *rates) of(size int64) (rate float64, err error) {
	if size <= usage.Memory()/2 {
		if r.memory == 0 {
			r.memory = memoryRate()
		}
		return r.memory, nil
	}
	if r.disk == 0 {
		r.disk, err = diskRate(r.folder)
	}
	return r.disk, err
}

func memoryRate() float64 {
	from, to := make([]byte, tried), make([]byte, tried)
	copy(to, from) // so that pages exist
	began := time.Now()
	copy(to, from)
	return perSecond(began)
}

func perSecond(began time.Time) float64 {
	return tried / max(time.Since(began), time.Nanosecond).Seconds()
}

// diskRate writes a file, and reads it again from the disk.
func diskRate(folder *os.Root) (rate float64, err error) {
	f, name, err := private.CreateTemp(folder, "rate-", 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), folder.Remove(name)) }()
	data := make([]byte, tried)
	if _, err := rand.Read(data); err != nil {
		return 0, err
	}
	if _, err := f.Write(data); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	uncache(f)
	began := time.Now()
	if _, err := f.ReadAt(data, 0); err != nil {
		return 0, err
	}
	return perSecond(began), nil
}
