package write

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"

	"github.com/penstock/penstock/store"
)

// Identity computes the ID of a dataset from the digests of its fields. [ManifestBuilder] specifies the ID.
type Identity struct{ h hash.Hash }

// NewIdentity begins an ID with the fields, as JSON like in a manifest: datasets with equal bytes and other names,
// shapes or normalizations have different IDs.
func NewIdentity(fields []store.Field) *Identity {
	id := &Identity{sha256.New()}
	text, err := json.Marshal(fields)
	if err != nil {
		panic("store: a valid schema has no JSON: " + err.Error())
	}
	id.h.Write(text)
	return id
}

// Split begins a split. The digests of the fields in the split come next. The zero byte after the name keeps names of
// different lengths apart.
func (id *Identity) Split(name string) { id.h.Write(append([]byte(name), 0)) }

// Field adds the digest of the next field: a SHA-256, see [ManifestBuilder].
func (id *Identity) Field(digest []byte) { id.h.Write(digest) }

// String returns the ID: 32 hex digits.
func (id *Identity) String() string { return hex.EncodeToString(id.h.Sum(nil)[:16]) }
