package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// jsonlFormat reads a JSON object a line. The members of an object inside an object are
// columns too, named with a dot between.
type jsonlFormat struct{}

func openJSONL(ctx context.Context, path string, opts Options, wanted []Wanted) (Source, error) {
	return openTable(ctx, "jsonl", path, jsonlFormat{}, opts, wanted)
}

func (jsonlFormat) open(r io.Reader) (rowReader, error) {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxRow)
	return &jsonlRows{s: s}, nil
}

// jsonlRows reads one file.
type jsonlRows struct {
	s  *bufio.Scanner
	at int64
}

func (j *jsonlRows) next() (tableRow, error) {
	for j.s.Scan() {
		j.at++
		line := j.s.Bytes()
		if j.at == 1 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			return jsonRow{bytes.Clone(text), j.at}, nil
		}
	}
	switch err := j.s.Err(); err {
	case nil:
		return nil, io.EOF
	case bufio.ErrTooLong:
		return nil, fmt.Errorf("line %d has more than %d bytes", j.at+1, maxRow)
	default:
		return nil, err
	}
}

// jsonRow is a line.
type jsonRow struct {
	text []byte
	at   int64
}

func (r jsonRow) line() int64 { return r.at }

func (r jsonRow) each(f func(column string, c cell)) error {
	return eachMember(r.text, "", 0, f)
}

// eachMember calls f for the members of an object, and of the objects in it.
func eachMember(text []byte, prefix string, depth int, f func(column string, c cell)) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%w: the text is no JSON object", ErrValue)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("%w: not JSON: %w", ErrValue, err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("%w: not JSON: %w", ErrValue, err)
		}
		if err := eachCell(prefix+key.(string), raw, depth, f); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("%w: not JSON: %w", ErrValue, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: text behind the JSON object", ErrValue)
	}
	return nil
}

func eachCell(name string, raw json.RawMessage, depth int, f func(column string, c cell)) error {
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return fmt.Errorf("%w: not JSON: %w", ErrValue, err)
		}
		f(name, cell{text: text, quoted: true})
	case '{':
		if depth == maxDepth {
			return fmt.Errorf("%w: objects lie in more than %d objects", ErrValue, maxDepth)
		}
		return eachMember(raw, name+".", depth+1, f)
	case 'n':
		f(name, cell{})
	default:
		f(name, cell{text: string(raw)})
	}
	return nil
}
