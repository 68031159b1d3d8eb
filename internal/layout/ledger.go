package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// momentsBytes is the size of the statistics of a channel, or of lengths, in a ledger.
const momentsBytes = 64

// ColumnStates splits the state of statistics and identity of a dataset, which docs/format.md describes, by field: it
// returns the bytes of each field over all splits. Two fields with equal bytes have equal values in all records.
func ColumnStates(ledger []byte, fields []tensor.Spec) ([][]byte, error) {
	errShort := fmt.Errorf("the ledger of the manifest does not fit its fields: %w", ErrCorrupt)
	if len(ledger) < 4 {
		return nil, errShort
	}
	states, rest := make([][]byte, len(fields)), ledger[4:]
	take := func(n int) []byte {
		if n < 0 || n > len(rest) {
			n, rest = 0, nil
		}
		out := rest[:n]
		rest = rest[n:]
		return out
	}
	for range binary.LittleEndian.Uint32(ledger) {
		if len(take(8)) == 0 { // the number of records
			return nil, errShort
		}
		for i, f := range fields {
			begin := rest
			channels, _ := Channels(f)
			length := take(4)
			if len(length) == 0 {
				return nil, errShort
			}
			take(int(binary.LittleEndian.Uint32(length)))
			take(momentsBytes * (channels + 1))
			classes := take(4)
			if len(classes) == 0 {
				return nil, errShort
			}
			take(8 * int(binary.LittleEndian.Uint32(classes)))
			if rest == nil {
				return nil, errShort
			}
			states[i] = append(states[i], begin[:len(begin)-len(rest)]...)
		}
	}
	return states, nil
}

// SameColumns reports whether fields have the same values in two datasets with these ledgers. It compares sums in the
// ledgers, and reads no records.
func SameColumns(names []string, a, b []byte, fieldsA, fieldsB []tensor.Spec) bool {
	statesA, errA := ColumnStates(a, fieldsA)
	statesB, errB := ColumnStates(b, fieldsB)
	if errA != nil || errB != nil {
		return false
	}
	stateOf := func(name string, fields []tensor.Spec, states [][]byte) []byte {
		for i, f := range fields {
			if f.Name == name {
				return states[i]
			}
		}
		return nil
	}
	for _, name := range names {
		state := stateOf(name, fieldsA, statesA)
		if state == nil || !bytes.Equal(state, stateOf(name, fieldsB, statesB)) {
			return false
		}
	}
	return true
}
