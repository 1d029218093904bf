package httpapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Routes returns the handler for everything below /api: every route of the interface on one screen. The wrapper around
// a handler says who may call it: public, user (layer 1), customer, viewer, editor and hq (layer 2).
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
	mux.Post("/admin/logout", a.viewer(a.logout))

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
	mux.Get("/v2/branches", a.public(a.listBranches))
	mux.Get("/v2/banks", a.public(a.listBanks))
	mux.Get("/v2/site", a.public(a.showSite))
	mux.Get("/v2/hold", a.public(a.showHold))
	mux.Get("/v2/receipt", a.public(a.showReceipt))
	mux.Get("/v2/my-keys", a.customer(a.listKeys))
	mux.Get("/v2/keys/{key}", a.public(a.showKey))

	mux.Post("/v2/agent/enroll", a.public(a.exchangeToken))

	// Additions for the console
	mux.Get("/v2/admin/live", a.viewer(a.liveEvents))
	mux.Get("/v2/admin/branches/{branch}/timeline", a.viewer(a.timeline))
	mux.Get("/v2/admin/branches/{branch}/doors", a.viewer(a.listDoors))
	mux.Get("/v2/admin/branches/{branch}/climate", a.viewer(a.showClimate))
	mux.Get("/v2/admin/branches/{branch}/sensors", a.viewer(a.sensorHistory))
	mux.Get("/v2/admin/branches/{branch}/devices", a.viewer(a.showDevices))
	mux.Post("/v2/admin/branches/{branch}/agents", a.editor(a.enrollAgent))
	mux.Delete("/v2/admin/agents/{username}", a.editor(a.revokeAgent))
	mux.Get("/v2/admin/branches/{branch}/messages", a.viewer(a.listMessages))
	mux.Get("/v2/admin/messages/{id}", a.viewer(a.showMessage))
	mux.Post("/v2/admin/messages/{id}/resend", a.editor(a.resendMessage))
	mux.Post("/v2/admin/reservations/{id}/key-message", a.editor(a.resendKey))
	mux.Get("/v2/admin/branches/{branch}/audit", a.viewer(a.listAudit))
	mux.Get("/v2/admin/branches/{branch}/money", a.viewer(a.showMoney))
	mux.Post("/v2/admin/branches/{branch}/exports", a.viewer(a.noteExport))
	mux.Post("/v2/admin/reservations/{id}/refund", a.editor(a.retryRefund))
	mux.Get("/v2/admin/branches/{branch}/settings", a.viewer(a.showSettings))
	mux.Put("/v2/admin/branches/{branch}/settings", a.editor(a.changeSettings))
	mux.Put("/v2/admin/branches/{branch}/rooms/{room}", a.editor(a.changeRoom))
	mux.Post("/v2/admin/branches/{branch}/channels", a.editor(a.addListing))
	mux.Patch("/v2/admin/branches/{branch}/channels/{listing}", a.editor(a.switchListing))
	mux.Post("/v2/admin/branches/{branch}/channels/{listing}/export", a.editor(a.exportListing))
	mux.Post("/v2/admin/branches/{branch}/partner-bookings", a.editor(a.enterPartnerBooking))
	mux.Get("/v2/admin/account", a.viewer(a.showAccount))
	mux.Post("/v2/admin/account/password", a.viewer(a.changePassword))
	mux.Post("/v2/admin/account/totp", a.viewer(a.beginTOTP))
	mux.Put("/v2/admin/account/totp", a.viewer(a.confirmTOTP))
	mux.Delete("/v2/admin/account/totp", a.viewer(a.endTOTP))
	mux.Delete("/v2/admin/account/sessions/{session}", a.viewer(a.endOwnSession))
	mux.Get("/v2/admin/administrators", a.hq(a.listAdministrators))
	mux.Post("/v2/admin/administrators", a.hq(a.addAdministrator))
	mux.Put("/v2/admin/administrators/{id}", a.hq(a.changeAdministrator))
	mux.Patch("/v2/admin/administrators/{id}", a.hq(a.switchAdministrator))
	mux.Post("/v2/admin/administrators/{id}/password", a.hq(a.resetPassword))
	mux.Delete("/v2/admin/administrators/{id}/totp", a.hq(a.removeTOTP))
	mux.Delete("/v2/admin/administrators/{id}/sessions", a.hq(a.endSessions))
	mux.Post("/v2/admin/personal-data/export", a.hq(a.exportPerson))
	mux.Post("/v2/admin/personal-data/erase", a.hq(a.erasePerson))
	mux.Post("/v2/admin/differences/{id}/resolution", a.hq(a.resolveDifference))
	mux.Get("/v2/admin/reservations", a.viewer(a.searchReservations))
	mux.Get("/v2/admin/reservations/{id}", a.viewer(a.reservationRecord))
	return mux
}

// ended answers the V1 door endpoints, which ended on 2026-01-31 and never drive a lock.
func (a *API) ended(http.ResponseWriter, *http.Request) error { return errEnded }
