package part

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/producer"
	"github.com/penstock/penstock/store"
)

// Plan has everything that all parts of a dataset have in common: all that its bytes depend on, except
// the records themselves.
type Plan struct {
	Version int             `json:"part_version"` // 4
	Size    int             `json:"world_size"`
	Config  json.RawMessage `json:"config"` // as it is for a whole dataset, without what is of one machine
	Format  string          `json:"format"` // of the dataset
	Recipe  *store.Recipe   `json:"recipe"`
	Fields  []store.Field   `json:"fields"`
	Source  PlannedSource   `json:"source"`
	Ordered bool            `json:"ordered"` // the samples come in the order that --shuffle asks for
}

// PlannedSource is the source as every process must have seen it.
type PlannedSource struct {
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Samples int64    `json:"samples"`
	Unit    string   `json:"unit"`
	Splits  []string `json:"splits,omitempty"`
	Ignored int64    `json:"ignored"`
	First   string   `json:"first_ignored,omitempty"`
	Listing string   `json:"listing"` // digest of names and sizes
}

const Version = 4

// Differs says in what two plans differ; "" if they are the same.
func (p *Plan) Differs(other *Plan) string {
	a, b := p.flat(), other.flat()
	if x, y := p.Source.Listing, other.Source.Listing; x != y && p.Source.Samples == other.Source.Samples {
		return fmt.Sprintf("the samples, or their order, by the digests of their lists: %s, and %s", Clipped(x), Clipped(y))
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if a[key] != b[key] {
			return fmt.Sprintf("%s: %s, and %s", key, Clipped(a[key]), Clipped(b[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[key]; !ok {
			return fmt.Sprintf("%s: none, and %s", key, Clipped(b[key]))
		}
	}
	return ""
}

// flat returns the plan as text by key, and by key of key.
func (p *Plan) flat() map[string]string {
	all := make(map[string]string)
	text, err := json.Marshal(p)
	if err != nil {
		panic("preprocess: a plan has no JSON: " + err.Error())
	}
	flatten(all, "", text)
	return all
}

// flatten enters the members of a JSON object, and recursively the members of objects in it, under the key of the path.
func flatten(all map[string]string, key string, text json.RawMessage) {
	var members map[string]json.RawMessage
	if !bytes.HasPrefix(text, []byte("{")) || json.Unmarshal(text, &members) != nil {
		all[key] = string(text)
		return
	}
	for name, value := range members {
		if key != "" {
			name = key + "." + name
		}
		flatten(all, name, value)
	}
}

func Clipped(text string) string {
	const most = 120
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// Info describes the source by the plan's notes about it.
func (p *Plan) Info() source.Info {
	s := p.Source
	i := source.Info{
		Kind: s.Kind, Name: s.Name, Count: s.Samples, Unit: s.Unit, Splits: s.Splits,
		Ignored: source.Ignored{Count: s.Ignored, First: s.First}, Inputs: p.inputs(),
	}
	for _, f := range p.Fields {
		i.Fields = append(i.Fields, source.Field{Field: f})
	}
	return i
}

// inputs returns the digest of a producer's inputs, which is its listing.
func (p *Plan) inputs() string {
	if p.Source.Kind != producer.Kind {
		return ""
	}
	return p.Source.Listing
}

// Became reports whether a dataset is of the samples that the plan is of.
func (p *Plan) Became(m *store.Manifest) bool {
	return m.Source != nil && m.Recipe != nil && m.Source.Samples == p.Source.Samples &&
		m.Source.Name == p.Source.Name && m.Recipe.Program == p.Recipe.Program && m.Source.Inputs == p.inputs()
}

// Formats of a dataset.
const (
	Flat = "flat"
	HDF5 = "hdf5"
	Zarr = "zarr"
)
