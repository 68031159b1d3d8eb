package column

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/tensor"
)

// EachMember calls f for the members of an object, and of the objects in it.
func EachMember(text []byte, prefix string, depth int, f func(column string, c Cell)) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return source.ValueError("the text is not a JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return source.ValueError("not JSON: %w", err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return source.ValueError("not JSON: %w", err)
		}
		if err := eachCell(prefix+key.(string), raw, depth, f); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return source.ValueError("not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return source.ValueError("text behind the JSON object")
	}
	return nil
}

func eachCell(name string, raw json.RawMessage, depth int, f func(column string, c Cell)) error {
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return source.ValueError("not JSON: %w", err)
		}
		f(name, Cell{Text: text, Quoted: true})
	case '{':
		if depth == MaxDepth {
			return source.ValueError("objects are in more than %d objects", MaxDepth)
		}
		return EachMember(raw, name+".", depth+1, f)
	case 'n':
		f(name, Cell{})
	default:
		f(name, Cell{Text: string(raw)})
	}
	return nil
}

// MaxDepth is how deep lists may be in lists.
const MaxDepth = tensor.MaxRank
