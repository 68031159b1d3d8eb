package prepare

import (
	"slices"

	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// continued returns the destination of the build that a producer may continue; "" if it begins.
func continued(c setup) string {
	switch {
	case c.producer == nil || c.Overwrite:
		return ""
	case c.Rank.Size > 0:
		return c.attempt
	case c.Resume:
		return c.Dest
	}
	return ""
}

// keptSchema returns the schema of the records of an interrupted run, for a producer that has no more samples to send:
// the run ended between its last sample and the commit. The schema has no fields if the run has no records.
func keptSchema(c setup) (store.Schema, error) {
	dest := continued(c)
	if dest == "" {
		return store.Schema{}, nil
	}
	_, fields, kept, err := write.ReadUnfinished(dest)
	if err != nil || kept.Records == 0 {
		return store.Schema{}, err
	}
	ofRank := func(f store.Field) bool { return f.Name == part.TraceFieldName } // a rank adds it again
	return store.Schema{Fields: slices.DeleteFunc(fields, ofRank)}, nil
}
