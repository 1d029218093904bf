package httpapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Routes returns the handler for everything below /api: every route of the interface on one screen. The wrapper around a
// handler states who may call it: public, user (layer 1), customer, viewer, editor and hq (layer 2).
func (a *API) Routes() http.Handler {
	mux := chi.NewRouter()
	mux.Use(a.identified, canonical, a.logRequests, a.recoverPanics, a.session)
	mux.NotFound(a.noPath)
	mux.MethodNotAllowed(a.noMethod)

	// Availability and calendar
	mux.Get("/reservations", a.public(a.slotsV1))
	mux.Get("/v2/branches/{branch}/calendar", a.public(a.calendar))
	mux.Get("/v2/branches/{branch}/reservations", a.public(a.slotsV2))

	// Reservation and payment
	mux.Post("/reservation", a.public(a.hold))
	mux.Delete("/reservation", a.public(a.release))
	mux.Post("/payment", a.public(a.registerPayment))
	mux.Post("/payment/confirm", a.public(a.confirmPayment))
	mux.Post("/payment/cancel", a.customer(a.cancelPayment))
	mux.Get("/my-reservations", a.customer(a.myReservations))
	mux.Post("/virtualaccount/webhook", a.public(a.providerCallback))

	// Customer login
	mux.Post("/account/code", a.public(a.sendLoginCode))
	mux.Post("/account/login", a.public(a.loginCustomer))
	mux.Post("/account/logout", a.public(a.logout))

	// Doors
	mux.Post("/door/v2/unlock", a.public(a.unlockDoor))
	mux.Get("/door/v2/unlock/subscribe", a.public(a.awaitDoor))
	mux.Post("/door/unlock", a.public(a.ended))

	// Administrators: account
	mux.Post("/admin/login", a.public(a.loginAdmin))
	mux.Post("/admin/logout", a.own(a.logout))

	// Administrators: reservations
	mux.Get("/admin/reservations", a.viewer(a.adminSlots))
	mux.Get("/admin/reservation/{id}", a.viewer(a.reservationDetail))
	mux.Delete("/admin/reservation/{id}", a.editor(a.adminCancel))
	mux.Put("/admin/reservation/{id}", a.editor(a.moveReservation))
	mux.Post("/admin/reservation", a.editor(a.adminHold))
	mux.Post("/admin/payment", a.editor(a.registerWithoutPayment))
	mux.Post("/admin/v2/virtual-accounts", a.editor(a.issueAccount))
	mux.Patch("/admin/machines/{branch}/{room}", a.editor(a.switchRoom))

	// Administrators: devices
	mux.Post("/admin/door/v2/unlock/{branch}/{doorType}", a.editor(a.adminUnlockDoor))
	mux.Post("/admin/door/v2/unlock/{branch}/{doorType}/{roomNo}", a.editor(a.adminUnlockDoor))
	mux.Get("/admin/door/v2/unlock/subscribe", a.viewer(a.adminAwaitDoor))
	mux.Post("/admin/door/unlock/{branch}/{doorType}", a.viewer(a.ended))
	mux.Post("/admin/door/unlock/{branch}/{doorType}/{roomNo}", a.viewer(a.ended))
	mux.Get("/admin/airconditioner/{branch}", a.viewer(a.airConditionerOptions))
	mux.Post("/admin/airconditioner/{airconditioner_id}", a.editor(a.commandAirConditioner))
	mux.Post("/admin/thermo-hygrometer/{branch}", a.viewer(a.readSensors))

	// Others
	mux.Post("/franchise/inquiries", a.public(a.inquireFranchise))
	mux.Post("/discord/interactions", a.Discord.ServeHTTP)

	// Additions, documented in openapi.yaml
	mux.Get("/openapi.yaml", a.public(a.openAPI))
	mux.Get("/v2/me", a.user(a.whoAmI))
	mux.Get("/v2/events", a.viewer(a.listEvents))
	mux.Get("/v2/branches", a.public(a.listBranches))
	mux.Get("/v2/branches/now", a.public(a.branchesNow))
	mux.Get("/v2/banks", a.public(a.listBanks))
	mux.Get("/v2/site", a.public(a.showSite))
	mux.Get("/v2/hold", a.public(a.showHold))
	mux.Get("/v2/receipt", a.public(a.showReceipt))
	mux.Get("/v2/my-keys", a.customer(a.listKeys))
	mux.Get("/v2/my-reservations/{id}/refund", a.customer(a.quoteRefund))
	mux.Get("/v2/refund-accounts/{token}", a.public(a.showRefundLink))
	mux.Post("/v2/refund-accounts/{token}", a.public(a.enterRefundAccount))
	// Guests ask for these two on a poor network. Their answers repeat nothing from the request, so their length tells no secret.
	zipped := mux.With(middleware.Compress(5, "application/json"))
	zipped.Get("/v2/keys/{key}", a.public(a.showKey))
	zipped.Get("/v2/keys/{key}/extension", a.public(a.showExtension))
	mux.Get("/v2/keys/{key}/why", a.public(a.whyKey))
	mux.Post("/v2/keys/{key}/climate", a.public(a.chooseClimate))
	mux.Get("/v2/keys/{key}/companions", a.public(a.listCompanions))
	mux.Post("/v2/keys/{key}/companions", a.public(a.addCompanion))
	mux.Delete("/v2/keys/{key}/companions/{companion}", a.public(a.revokeCompanion))
	mux.Post("/v2/keys/{key}/extension", a.public(a.extendStay))
	mux.Post("/v2/keys/{key}/end", a.public(a.endStay))
	mux.Post("/v2/my-reservations/{id}/exchange", a.customer(a.exchangeStay))
	mux.Post("/v2/keys/{key}/codes", a.public(a.giveCode))

	mux.Post("/v2/agent/enroll", a.public(a.exchangeToken))

	// Additions for the console
	c := a.Console
	mux.Get("/v2/admin/live", a.viewer(c.LiveEvents))
	mux.Get("/v2/admin/overview", a.viewer(c.ShowOverview))
	mux.Get("/v2/admin/doors/levels", a.viewer(c.ShowDoorLevels))
	mux.Get("/v2/admin/reports/occupancy", a.viewer(c.ShowOccupancy))
	mux.Get("/v2/admin/reports/occupancy.csv", a.viewer(c.OccupancyFile))
	mux.Get("/v2/admin/reports/climate", a.viewer(c.ShowAir))
	mux.Get("/v2/admin/reports/climate.csv", a.viewer(c.AirCSV))
	mux.Get("/v2/admin/reports/climate.xlsx", a.viewer(c.AirXLSX))
	mux.Get("/v2/admin/cleaning", a.viewer(a.listCleaning))
	mux.Post("/v2/admin/cleaning/{branch}/{room}/unlock", a.editor(a.openForCleaning))
	mux.Post("/v2/admin/cleaning/{branch}/{room}/done", a.editor(a.finishCleaning))
	mux.Get("/v2/admin/alerts", a.viewer(c.ListAlerts))
	mux.Post("/v2/admin/alerts/{id}/acknowledge", a.editor(c.AcknowledgeAlert))
	mux.Get("/v2/admin/alert-contacts", a.hq(c.ShowAlertContacts))
	mux.Put("/v2/admin/alert-contacts", a.hq(c.ChangeAlertContacts))
	mux.Get("/v2/admin/branches/{branch}/timeline", a.viewer(c.Timeline))
	mux.Post("/v2/admin/branches/{branch}/quarantine/{id}/release", a.hq(c.ReleaseQuarantine))
	mux.Get("/v2/admin/branches/{branch}/doors", a.viewer(c.ListDoors))
	mux.Get("/v2/admin/branches/{branch}/climate", a.viewer(c.ShowClimate))
	mux.Get("/v2/admin/branches/{branch}/climate-policy", a.viewer(a.showClimatePolicy))
	mux.Put("/v2/admin/branches/{branch}/climate-policy", a.editor(a.changeClimatePolicy))
	mux.Get("/v2/admin/branches/{branch}/sensors", a.viewer(c.SensorHistory))
	mux.Get("/v2/admin/branches/{branch}/devices", a.viewer(c.ShowDevices))
	mux.Post("/v2/admin/branches/{branch}/agents", a.editor(c.EnrollAgent))
	mux.Delete("/v2/admin/agents/{username}", a.editor(c.RevokeAgent))
	mux.Post("/v2/admin/agents/{username}/activate", a.editor(c.ActivateAgent))
	mux.Get("/v2/admin/agents/rollout", a.hq(c.ShowRollout))
	mux.Post("/v2/admin/agents/rollout", a.hq(c.StartRollout))
	mux.Delete("/v2/admin/agents/rollout", a.hq(c.StopRollout))
	mux.Post("/v2/admin/agents/{username}/rotate", a.editor(c.RotateAgent))
	mux.Get("/v2/admin/branches/{branch}/messages", a.viewer(c.ListMessages))
	mux.Get("/v2/admin/messages/{id}", a.viewer(c.ShowMessage))
	mux.Post("/v2/admin/messages/{id}/resend", a.editor(c.ResendMessage))
	mux.Post("/v2/admin/reservations/{id}/key-message", a.editor(a.resendKey))
	mux.Get("/v2/admin/reservations/{id}/why", a.viewer(a.whyReservation))
	mux.Post("/v2/admin/reservations/{id}/key", a.editor(a.rotateKey))
	mux.Patch("/v2/admin/reservations/{id}/contact", a.editor(a.correctContact))
	mux.Delete("/v2/admin/reservations/{id}/companions/{companion}", a.editor(a.adminRevokeCompanion))
	mux.Get("/v2/admin/branches/{branch}/audit", a.viewer(c.ListAudit))
	mux.Get("/v2/admin/proof", a.hq(c.ShowProof))
	mux.Get("/v2/admin/proofs", a.hq(c.ListProofs))
	mux.Get("/v2/admin/settlement", a.viewer(c.ShowSettlement))
	mux.Get("/v2/admin/settlement.csv", a.viewer(c.SettlementCSV))
	mux.Get("/v2/admin/settlement.xlsx", a.viewer(c.SettlementXLSX))
	mux.Get("/v2/admin/branches/{branch}/money", a.viewer(c.ShowMoney))
	mux.Get("/v2/admin/branches/{branch}/payments", a.viewer(c.ListPayments))
	mux.Get("/v2/admin/branches/{branch}/payments.csv", a.viewer(c.PaymentFile))
	mux.Post("/v2/admin/branches/{branch}/exports", a.viewer(c.NoteExport))
	mux.Post("/v2/admin/reservations/{id}/refund", a.editor(a.retryRefund))
	mux.Post("/v2/admin/reservations/{id}/refund/approval", a.editor(a.approveRefund))
	mux.Post("/v2/admin/reservations/{id}/refunds", a.editor(a.refund))
	mux.Post("/v2/admin/reconciliation", a.hq(a.reconcile))
	mux.Get("/v2/admin/branches/{branch}/settings", a.viewer(c.ShowSettings))
	mux.Post("/v2/admin/closures", a.editor(a.closeBranches))
	mux.Put("/v2/admin/branches/{branch}/settings", a.editor(c.ChangeSettings))
	mux.Put("/v2/admin/branches/{branch}/rooms/{room}", a.editor(c.ChangeRoom))
	mux.Delete("/v2/admin/branches/{branch}/rooms/{room}", a.editor(c.DeleteRoom))
	mux.Put("/v2/admin/branches/{branch}/doors/{device}/pin", a.editor(c.SetPIN))
	mux.Post("/v2/admin/branches/{branch}/channels", a.editor(c.AddListing))
	mux.Patch("/v2/admin/branches/{branch}/channels/{listing}", a.editor(c.SwitchListing))
	mux.Post("/v2/admin/branches/{branch}/channels/{listing}/export", a.editor(c.ExportListing))
	mux.Post("/v2/admin/branches/{branch}/partner-bookings", a.editor(c.EnterPartnerBooking))
	mux.Get("/v2/admin/account", a.own(c.ShowAccount))
	mux.Post("/v2/admin/account/password", a.own(c.ChangePassword))
	mux.Post("/v2/admin/account/totp", a.own(c.BeginTOTP))
	mux.Put("/v2/admin/account/totp", a.own(c.ConfirmTOTP))
	mux.Delete("/v2/admin/account/totp", a.own(c.EndTOTP))
	mux.Post("/v2/admin/account/recovery-codes", a.own(c.NewRecoveryCodes))
	mux.Get("/v2/admin/account/confirmation", a.own(c.ShowConfirmation))
	mux.Post("/v2/admin/account/confirmation", a.own(c.ConfirmIdentity))
	mux.Delete("/v2/admin/account/sessions/{session}", a.own(c.EndOwnSession))
	mux.Get("/v2/admin/administrators", a.hq(c.ListAdministrators))
	mux.Post("/v2/admin/administrators", a.hq(c.AddAdministrator))
	mux.Put("/v2/admin/administrators/{id}", a.hq(c.ChangeAdministrator))
	mux.Patch("/v2/admin/administrators/{id}", a.hq(c.SwitchAdministrator))
	mux.Post("/v2/admin/administrators/{id}/password", a.hq(c.ResetPassword))
	mux.Delete("/v2/admin/administrators/{id}/totp", a.hq(c.RemoveTOTP))
	mux.Delete("/v2/admin/administrators/{id}/sessions", a.hq(c.EndSessions))
	mux.Get("/v2/admin/webhooks", a.hq(c.ListWebhooks))
	mux.Post("/v2/admin/webhooks", a.hq(c.AddWebhook))
	mux.Patch("/v2/admin/webhooks/{id}", a.hq(c.SwitchWebhook))
	mux.Delete("/v2/admin/webhooks/{id}", a.hq(c.RemoveWebhook))
	mux.Get("/v2/admin/webhooks/{id}/deliveries", a.hq(c.ListDeliveries))
	mux.Post("/v2/admin/webhooks/{id}/replay", a.hq(c.ReplayWebhook))
	mux.Get("/v2/admin/tokens", a.hq(c.ListTokens))
	mux.Post("/v2/admin/tokens", a.hq(c.AddToken))
	mux.Delete("/v2/admin/tokens/{id}", a.hq(c.RemoveToken))
	mux.Post("/v2/admin/personal-data/export", a.hq(c.ExportPerson))
	mux.Post("/v2/admin/personal-data/erase", a.hq(c.ErasePerson))
	mux.Post("/v2/admin/differences/{id}/resolution", a.hq(c.ResolveDiscrepancy))
	mux.Get("/v2/admin/reservations", a.viewer(c.SearchReservations))
	mux.Get("/v2/admin/reservations/{id}", a.viewer(c.ReservationRecord))
	return mux
}

// ended answers the V1 door operations, which ended on 2026-01-31 and never drive a lock.
func (a *API) ended(http.ResponseWriter, *http.Request) error { return errEnded }
