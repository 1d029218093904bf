package climate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Tree returns the options of a branch's air conditioners, as its agent announced them last. It is empty for a branch that
// never had an agent.
func (s *Service) Tree(ctx context.Context, branch string) ([]protocol.OptionNode, error) {
	inventory, err := postgres.Inventory(ctx, s.DB.Pool, branch)
	if err != nil {
		return nil, fmt.Errorf("climate: options of branch %s: %w", branch, err)
	}
	return protocol.OptionTree(branch, inventory.AirConditioners), nil
}

// BranchOfOption returns the code of the branch whose air conditioner has this option, or ErrUnknownOption.
func (s *Service) BranchOfOption(ctx context.Context, optionID string) (branch string, err error) {
	option, err := s.option(ctx, optionID)
	return option.Branch, err
}

func (s *Service) option(ctx context.Context, id string) (postgres.Option, error) {
	option, err := postgres.OptionByID(ctx, s.DB.Pool, id)
	if errors.Is(err, postgres.ErrNoOption) {
		return option, ErrUnknownOption
	}
	if err != nil {
		return option, fmt.Errorf("climate: find option %s: %w", id, err)
	}
	return option, nil
}

// Command makes the agent transmit the infrared code of an option and returns when the agent has confirmed it. The caller
// authorizes the actor for the branch, see BranchOfOption. It returns ErrUnknownOption or ErrDeviceUnavailable.
func (s *Service) Command(ctx context.Context, actor, optionID string) error {
	option, err := s.option(ctx, optionID)
	if err != nil {
		return err
	}
	answer, err := s.exchange(ctx, option.Branch, func(requestID string) protocol.Message {
		return protocol.ClimateCommand{RequestID: requestID, AirConditionerID: optionID}
	})
	outcome := "unanswered"
	if result, ok := answer.(protocol.ClimateResult); ok {
		outcome = string(result.Outcome)
		switch {
		case result.AirConditionerID != optionID:
			outcome, err = "unanswered", fmt.Errorf("%w: %s was sent instead", ErrDeviceUnavailable, result.AirConditionerID)
		case result.Outcome != protocol.ClimateSent:
			err = fmt.Errorf("%w: %s: %s", ErrDeviceUnavailable, result.Outcome, result.Detail)
		}
	}
	if err != nil {
		s.Log.Warn("climate: command failed", "branch", option.Branch, "unit", option.Unit, "error", err)
	}
	// The command is logged even if the client has disconnected: the code may have been transmitted.
	logErr := s.DB.InTx(context.WithoutCancel(ctx), func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		if err := postgres.InsertCommand(ctx, tx, option, actor, outcome, s.now()); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: actor, Branch: option.Branch, Action: "airconditioner.command", Target: option.Branch,
			Detail: map[string]string{"option": optionID, "outcome": outcome},
		})
	})
	if logErr != nil {
		s.Log.Error("climate: command not logged", "branch", option.Branch, "error", logErr)
	}
	return err
}

// Sensors reads the sensors of a branch now. Sensors that fail are omitted. It returns ErrDeviceUnavailable.
func (s *Service) Sensors(ctx context.Context, branch string) ([]protocol.Reading, error) {
	answer, err := s.exchange(ctx, branch, func(requestID string) protocol.Message {
		return protocol.SensorsRead{RequestID: requestID}
	})
	if err != nil {
		return nil, err
	}
	readings, ok := answer.(protocol.SensorsReadings)
	if !ok {
		return nil, fmt.Errorf("%w: %s answered with a %s", ErrDeviceUnavailable, branch, answer.Kind())
	}
	return readings.Readings, nil
}
