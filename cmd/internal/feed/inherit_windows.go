package feed

import (
	"context"
	"syscall"

	"golang.org/x/sys/windows"
)

// gone lists the errors of a connection whose other end has closed.
var gone = []error{windows.WSAECONNRESET, windows.WSAECONNABORTED, windows.ERROR_BROKEN_PIPE,
	windows.ERROR_NETNAME_DELETED}

// closeOnExec keeps a handle from programs that feed starts.
func closeOnExec(handle int) { syscall.CloseOnExec(syscall.Handle(handle)) }

// watchParent watches nothing: on Windows, children of the client do not inherit the connection, so
// it closes when the client ends.
func watchParent(context.Context, func(error)) bool { return false }
