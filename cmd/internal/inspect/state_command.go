package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader"
)

const stateLong = `Show where a saved state is, and how often it has seen each dataset of a mixture. FILE is its JSON:
json.dump(loader.state_dict(), file). - reads standard input.`

const stateExamples = `  inspect state state.json`

// stateCommand returns the command inspect state.
func stateCommand() *cobra.Command {
	cmd := cli.Command(&cobra.Command{
		Use: "state [flags] FILE", Short: "Show where a saved state of a loader is", Long: stateLong, Example: stateExamples,
		PreRunE: cli.Needs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := readState(cmd.InOrStdin(), args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return cli.Print(cmd, st, st.Render)
		},
	})
	cli.JSONFlag(cmd)
	return cmd
}

// savedState is the state of a loader in a file.
type savedState struct {
	loader.State
	Mixed []loader.MixedStats `json:"mixed,omitempty"`
}

// largestState is more than any state has, so that no file makes Mixed take long.
const largestState = 16 << 10

func readState(stdin io.Reader, path string) (*savedState, error) {
	var text []byte
	var err error
	if path == "-" {
		text, err = io.ReadAll(io.LimitReader(stdin, largestState+1))
	} else {
		text, err = cli.ReadFile(path)
	}
	var st savedState
	var names map[string]json.RawMessage
	load := ""
	if bytes.HasPrefix(text, []byte("PK\x03\x04")) {
		load = fmt.Sprintf("torch.load(%q)", path)
	} else if bytes.HasPrefix(text, []byte{0x80}) {
		load = fmt.Sprintf(`pickle.load(open(%q, "rb"))`, path)
	}
	switch {
	case err != nil:
		return nil, err
	case load != "":
		return nil, fmt.Errorf("the state must be JSON: if this checkpoint has it under the name data, "+
			`json.dump(%s["data"], open("state.json", "w")) in Python writes it`, load)
	case json.Unmarshal(text, &names) != nil:
		return nil, fmt.Errorf("no JSON; in Python, json.dump(loader.state_dict(), file) writes a state")
	case names["penstock"] != nil:
		return nil, fmt.Errorf("the state of a loader of Python code: epoch %s, and %s batches of it", names["epoch"], names["step"])
	case names["v"] == nil || names["epoch"] == nil || len(text) > largestState:
		return nil, fmt.Errorf("not what state_dict() returned: no v and epoch, or more than %s; write that alone: "+
			"json.dump(loader.state_dict(), file)", units.Bytes(largestState))
	}
	if err := json.Unmarshal(text, &st); err != nil {
		return nil, err
	}
	if st.Mix != nil {
		st.Mixed, err = st.State.Mixed()
	}
	return &st, err
}

// Render prints the state as text.
func (st *savedState) Render(w io.Writer) error {
	var t cli.Table
	t.Add("dataset", st.Dataset)
	if st.Generations != "" {
		t.Add("generations", st.Generations)
	}
	t.Add("records", units.Count(int64(st.Records)))
	t.Add("epoch", strconv.Itoa(st.Epoch))
	position := "batch " + units.Count(int64(st.Step)) + " of the epoch is next"
	if st.Done != "" {
		position += ", and some later batches were handed out before it"
	}
	t.Add("position", position)
	t.Add("batches", units.Counted(int64(st.GlobalBatch), "record")+" of all ranks")
	t.Add("ranks", "any number that divides a batch")
	t.Add("seed", strconv.FormatUint(st.Seed, 10))
	t.Add("order", st.Sampler)
	text := t.String()
	if st.Mix != nil {
		of := cli.Table{Align: "rrrr"}
		of.Add("dataset", "records", "drawn", "epochs")
		for i, m := range st.Mixed {
			of.Add(strconv.Itoa(i), units.Count(int64(m.Records)), units.Count(int64(m.Drawn)), fmt.Sprintf("%.2f", m.Epochs))
		}
		text += "\n" + of.String()
	}
	_, err := io.WriteString(w, text)
	return err
}
