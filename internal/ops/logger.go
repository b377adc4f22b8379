package ops

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewLogger makes the program's logger, which writes to w: lines for people
// when terminal is true, JSON otherwise, unless the configuration says which.
// The level that it returns with it can be changed at any time (see Level). The
// configuration has been validated.
func NewLogger(c Config, w io.Writer, terminal bool) (*zap.Logger, zap.AtomicLevel, error) {
	at, err := c.Level()
	level := zap.NewAtomicLevelAt(at)
	return zap.New(zapcore.NewCore(encoder(c.LogFormat, terminal), zapcore.Lock(zapcore.AddSync(w)), level)), level, err
}

// Level is the log level as the logger has it.
func (c Config) Level() (zapcore.Level, error) {
	level, err := zapcore.ParseLevel(c.LogLevel)
	if err != nil {
		return level, fmt.Errorf("log.level: %w", err)
	}
	return level, nil
}

func encoder(format string, terminal bool) zapcore.Encoder {
	e := zap.NewProductionEncoderConfig()
	e.TimeKey, e.MessageKey = "time", "message"
	e.EncodeTime = zapcore.ISO8601TimeEncoder
	e.EncodeDuration = zapcore.StringDurationEncoder
	if format == "json" || format != "console" && !terminal {
		return zapcore.NewJSONEncoder(e)
	}
	e.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
	e.EncodeLevel = zapcore.CapitalLevelEncoder
	e.ConsoleSeparator = "  "
	return zapcore.NewConsoleEncoder(e)
}
