package column

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// EachMember calls f with each member of the JSON object in text. The members of objects in it have dotted names,
// after prefix. depth is the number of enclosing objects.
func EachMember(text []byte, prefix string, depth int, f func(column string, c Cell)) error {
	if err := checkText(text); depth == 0 && err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return source.ValueError("the text is not a JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return notJSON(err)
		}
		if err := eachCell(prefix+key.(string), raw, depth, f); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return source.ValueError("text after the JSON object")
	}
	return nil
}

// notJSON rewords an error of encoding/json. NaN and Infinity, which Python's json writes and pandas reads, are not
// JSON, so the error says how to write the table as CSV.
func notJSON(err error) error {
	if text := err.Error(); strings.Contains(text, "'N'") || strings.Contains(text, "'I'") {
		return source.ValueError("not JSON, which has no NaN and no Infinity; write the table as CSV: "+
			"pandas.read_json(FILE, lines=True).to_csv(OTHER, na_rep='nan', index=False), without lines=True for a file of one "+
			"array: %w", err)
	}
	return source.ValueError("not JSON: %w", err)
}

// checkText returns an error for text that encoding/json would change silently: it replaces bytes that are not
// UTF-8, and unpaired surrogate escapes, by U+FFFD.
func checkText(text []byte) error {
	if !utf8.Valid(text) {
		return source.ValueError("it has bytes that are not UTF-8")
	}
	for rest := text; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 || i+1 >= len(rest) {
			return nil
		}
		rest = rest[i+1:]
		first, ok := surrogate(rest)
		switch {
		case !ok:
			rest = rest[1:]
			continue
		case first < 0xdc00 && len(rest) > 5 && rest[5] == '\\':
			if second, ok := surrogate(rest[6:]); ok && second >= 0xdc00 {
				rest = rest[11:]
				continue
			}
		}
		return source.ValueError("it has the escape \\%s, half of a surrogate pair without the other half", rest[:5])
	}
}

// surrogate returns the surrogate in an escape at the beginning of text, after its backslash. ok is false for other
// escapes.
func surrogate(text []byte) (half uint64, ok bool) {
	if len(text) < 5 || text[0] != 'u' {
		return 0, false
	}
	half, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	return half, err == nil && half >= 0xd800 && half < 0xe000
}

// eachCell calls f with a member as a cell, or with the members of an object under dotted names, as tables have
// flat columns. null is a missing cell and not the text "null".
func eachCell(name string, raw json.RawMessage, depth int, f func(column string, c Cell)) error {
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return notJSON(err)
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

// MaxDepth limits the nesting of lists and objects. A text of only brackets would otherwise overflow the stack.
const MaxDepth = tensor.MaxRank
