package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/penstock/penstock/internal/testkit/h5test"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"preprocess": main})
}

// The scripts are the specification of the command.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PYTHON", h5test.Find())
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"image":     imageCmd,
			"truncate":  truncateCmd,
			"exits":     exitsCmd,
			"holds":     holdsCmd,
			"same":      sameCmd,
			"stop-at":   stopCmd,
			"smalldisk": smallDiskCmd,
		},
		RequireUniqueNames: true,
	})
}
