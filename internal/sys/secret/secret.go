// Package secret passes arguments to a child process by its environment. Every user of the machine can read command
// lines, and files outlive a process that is killed; the environment is shown to the user of the process alone. In a
// command line, or in a temporary file for the child, stands the name of the variable.
package secret

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// prefix begins the names of variables.
const prefix = "PENSTOCK_URL_"

var values = make(map[string]string)

// Take takes the variables out of the environment, so that other child processes do not have them. It is called once,
// first.
func Take() {
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, prefix) {
			values[name] = value
			_ = os.Unsetenv(name)
		}
	}
}

// Value returns the value of the variable with a name; text that is no such name is returned as it is.
func Value(text string) string {
	if value, ok := values[text]; ok {
		return value
	}
	return text
}

// Values returns the values of all texts.
func Values(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = Value(text)
	}
	return out
}

// Hide moves URLs from the arguments of a command, which is about to be started, to its environment.
func Hide(cmd *exec.Cmd) {
	env := cmd.Environ()
	for i, arg := range cmd.Args {
		if strings.Contains(arg, "://") {
			cmd.Args[i] = prefix + strconv.Itoa(i)
			env = append(env, cmd.Args[i]+"="+arg)
		}
	}
	cmd.Env = env
}
