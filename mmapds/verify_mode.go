package mmapds

import "fmt"

// VerifyMode says which blocks of records are compared with their CRC32C before they are handed
// out. A block is one record of 4 KiB or more, else as many as fit into 64 KiB: access to any
// record reads the whole block. Dataset.DescribeReads returns the time that the comparison took.
type VerifyMode int

// VerifyOff compares nothing. VerifyFirstTouch compares a block when it is first asked for, and
// holds one bit per block and its checksum. VerifyAlways compares a block whenever it is asked for.
const (
	VerifyOff VerifyMode = iota
	VerifyFirstTouch
	VerifyAlways
	verifySample // see WithVerifySample
)

// verification is a VerifyMode with the fraction for verifySample.
type verification struct {
	mode     VerifyMode
	fraction float64
}

// String returns the mode in words.
func (v verification) String() string {
	switch v.mode {
	case VerifyOff:
		return "never checked"
	case VerifyFirstTouch:
		return "checked at first touch"
	case VerifyAlways:
		return "checked each time"
	}
	return fmt.Sprintf("%.3g %% checked", 100*v.fraction)
}

// validate returns an error for a mode or fraction that cannot be.
func (v verification) validate() error {
	switch {
	case v.mode == verifySample && !(v.fraction >= 0 && v.fraction <= 1):
		return fmt.Errorf("WithVerifySample: a fraction of %v; it must be from 0 to 1", v.fraction)
	case v.mode < VerifyOff || v.mode > verifySample:
		return fmt.Errorf("WithVerify: there is no VerifyMode %d", int(v.mode))
	}
	return nil
}
