package verify

import (
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

// Render prints a line for each corruption, for each part that was not checked, and for each
// remark, and then the result.
func (v *Verification) Render(w io.Writer) error {
	if err := v.RenderCorruptions(w); err != nil {
		return err
	}
	var b strings.Builder
	v.renderNotes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// RenderCorruptions prints a line for each corruption, and nothing if the dataset is intact.
func (v *Verification) RenderCorruptions(w io.Writer) error {
	for _, d := range v.Corruptions {
		if _, err := fmt.Fprintf(w, "corrupt: %s\n", d); err != nil {
			return err
		}
	}
	return nil
}

// renderNotes prints everything but corruption. A dataset is only called whole if checksums vouched
// for its values; otherwise only its structure was checked, and the line says so.
func (v *Verification) renderNotes(b *strings.Builder) {
	for _, u := range v.Unchecked {
		fmt.Fprintf(b, "not checked: %s\n", shell.Line(u))
	}
	for _, u := range v.Boxes {
		fmt.Fprintf(b, "note: %s\n", shell.Line(u))
	}
	for _, u := range v.Unknown {
		fmt.Fprintf(b, "note: %s is not a file of the dataset\n", shell.Line(u))
	}
	if v.Whole && v.Checksums > 0 {
		fmt.Fprintf(b, "%s is whole: %s, %s match %s%s\n", shell.Line(v.Path),
			units.Counted(v.Records, "record"), units.Bytes(v.Bytes), units.Counted(v.Checksums, "checksum"), v.metadataText())
	} else if v.Whole && v.Chunks > 0 {
		fmt.Fprintf(b, "%s: its structure is sound; %s match the checksums of their filters\n", shell.Line(v.Path),
			units.Counted(v.Chunks, "chunk"))
	} else if v.Whole {
		fmt.Fprintf(b, "%s: its structure is sound; there are no checksums to compare its content with\n", shell.Line(v.Path))
	}
}

// metadataText says how many bytes besides records were compared.
func (v *Verification) metadataText() string {
	if v.Metadata == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of metadata match theirs", units.Bytes(v.Metadata))
}

// String names the field, the shard, the records and the place in the file, as far as they are
// known.
func (d Corruption) String() string {
	if d.Field == "" {
		return fmt.Sprintf("%s: %s", shell.Line(d.File), shell.Line(d.Problem))
	}
	records := fmt.Sprintf("records %d to %d", d.First, d.Last)
	if d.First == d.Last {
		records = fmt.Sprintf("record %d", d.First)
	}
	return fmt.Sprintf("field %q, shard %d, %s: %s at byte %d: %s", d.Field, d.Shard, records, shell.Line(d.File),
		d.Offset, shell.Line(d.Problem))
}

// Err returns the error of the command if something is corrupt.
func (v *Verification) Err() error {
	if v.Whole {
		return nil
	}
	return fmt.Errorf("%s is corrupt in %s", v.Path, units.Counted(int64(len(v.Corruptions)), "place"))
}
