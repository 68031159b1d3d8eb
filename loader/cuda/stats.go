package cuda

import (
	"errors"
	"time"
)

// Stats counts the work of a Prefetcher since New, and states the features that were refused: a snapshot.
type Stats struct {
	Batches int // handed to the consumer
	Records int // in those

	Copies      int   // to devices, all asynchronous
	PinnedBytes int64 // copied from page-locked memory that the Loader filled
	StagedBytes int64 // that had to be copied on the host first: to page-locked memory of the Prefetcher
	DirectBytes int64 // copied from the dataset's own memory
	Normalized  int64 // elements that devices turned into floats

	DeviceBytes int64 // allocated on all devices, ever
	LockedBytes int   // page-locked now for the devices of this process, mappings included
	Direct      []Mapped

	Wait       time.Duration // that the consumer waited on the host for batches
	SlotWait   time.Duration // that copies waited for the consumer to end a batch
	CopyWait   time.Duration // that the next batch of the Loader waited for an earlier copy
	Unfinished int           // loop bodies that ended without Done, so that the host waited for the device
	Held       int           // batches held beyond their loop bodies now
}

// Mapped says whether a field of Options.Direct is page-locked, so that it can be copied to devices
// from the dataset's own memory.
type Mapped struct {
	Field  string
	Bytes  int    // page-locked; 0 if that was refused
	Reason string // why it was refused, so that the field is gathered; "" if it was not
}

// Stats returns the counts so far. It may be called during an epoch.
func (p *Prefetcher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.stats
	st.LockedBytes = locked.total()
	for _, m := range p.maps {
		st.Direct = append(st.Direct, Mapped{m.spec.Name, m.bytes, m.why})
	}
	for _, l := range p.lanes {
		st.Held += l.held
	}
	return st
}

// count changes the statistics with the lock held.
func (p *Prefetcher) count(change func(*Stats)) {
	p.mu.Lock()
	change(&p.stats)
	p.mu.Unlock()
}

// joinErrors is errors.Join, except that a single error stays as it is, so that its type can be
// compared.
func joinErrors(a, b error) error {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return errors.Join(a, b)
}
