package httpapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Routes returns the handler for everything below /api: every route of the interface on one screen. The wrapper around
// a handler says who may call it: handle (anybody), user (layer 1), customer, look, admin and hq (layer 2).
func (a *API) Routes() http.Handler {
	mux := chi.NewRouter()
	mux.Use(a.identified, canonical, a.logRequests, a.recoverPanics, a.session)
	mux.NotFound(a.noPath)
	mux.MethodNotAllowed(a.noMethod)

	// Availability and calendar
	mux.Get("/reservations", a.handle(a.slotsV1))
	mux.Get("/v2/branches/{branch}/calendar", a.handle(a.calendar))
	mux.Get("/v2/branches/{branch}/reservations", a.handle(a.slotsV2))

	// Reservation and payment
	mux.Post("/reservation", a.handle(a.hold))
	mux.Delete("/reservation", a.handle(a.release))
	mux.Post("/payment", a.handle(a.registerPayment))
	mux.Post("/payment/confirm", a.handle(a.confirmPayment))
	mux.Post("/payment/cancel", a.customer(a.cancelPayment))
	mux.Get("/my-reservations", a.customer(a.myReservations))
	mux.Post("/virtualaccount/webhook", a.handle(a.providerCallback))

	// Customer login
	mux.Post("/account/code", a.handle(a.sendLoginCode))
	mux.Post("/account/login", a.handle(a.loginCustomer))
	mux.Post("/account/logout", a.handle(a.logout))

	// Doors
	mux.Post("/door/v2/unlock", a.handle(a.unlockDoor))
	mux.Get("/door/v2/unlock/subscribe", a.handle(a.awaitDoor))
	mux.Post("/door/unlock", a.handle(a.ended))

	// Administrators: account
	mux.Post("/admin/login", a.handle(a.loginAdmin))
	mux.Post("/admin/logout", a.look(a.logout))

	// Administrators: reservations
	mux.Get("/admin/reservations", a.look(a.adminSlots))
	mux.Get("/admin/reservation/{id}", a.look(a.reservationDetail))
	mux.Delete("/admin/reservation/{id}", a.admin(a.adminCancel))
	mux.Put("/admin/reservation/{id}", a.admin(a.moveReservation))
	mux.Post("/admin/reservation", a.admin(a.adminHold))
	mux.Post("/admin/payment", a.admin(a.registerWithoutPayment))
	mux.Post("/admin/v2/virtual-accounts", a.admin(a.issueAccount))
	mux.Patch("/admin/machines/{branch}/{room}", a.admin(a.switchRoom))

	// Administrators: devices
	mux.Post("/admin/door/v2/unlock/{branch}/{doorType}", a.admin(a.adminUnlockDoor))
	mux.Post("/admin/door/v2/unlock/{branch}/{doorType}/{roomNo}", a.admin(a.adminUnlockDoor))
	mux.Get("/admin/door/v2/unlock/subscribe", a.look(a.adminAwaitDoor))
	mux.Post("/admin/door/unlock/{branch}/{doorType}", a.look(a.ended))
	mux.Post("/admin/door/unlock/{branch}/{doorType}/{roomNo}", a.look(a.ended))
	mux.Get("/admin/airconditioner/{branch}", a.look(a.airConditionerOptions))
	mux.Post("/admin/airconditioner/{airconditioner_id}", a.admin(a.commandAirConditioner))
	mux.Post("/admin/thermo-hygrometer/{branch}", a.look(a.readSensors))

	// Others
	mux.Post("/franchise/inquiries", a.handle(a.inquireFranchise))
	mux.Post("/discord/interactions", a.Discord.ServeHTTP)

	// Additions, documented in openapi.yaml
	mux.Get("/openapi.yaml", a.handle(a.openAPI))
	mux.Get("/v2/me", a.user(a.whoAmI))
	mux.Get("/v2/branches", a.handle(a.listBranches))
	mux.Get("/v2/banks", a.handle(a.listBanks))
	mux.Get("/v2/site", a.handle(a.showSite))
	mux.Get("/v2/hold", a.handle(a.showHold))
	mux.Get("/v2/receipt", a.handle(a.showReceipt))
	mux.Get("/v2/my-keys", a.customer(a.listKeys))
	mux.Get("/v2/keys/{key}", a.handle(a.showKey))

	mux.Post("/v2/agent/enroll", a.handle(a.exchangeToken))

	// Additions for the console
	mux.Get("/v2/admin/live", a.look(a.liveEvents))
	mux.Get("/v2/admin/branches/{branch}/timeline", a.look(a.timeline))
	mux.Get("/v2/admin/branches/{branch}/doors", a.look(a.listDoors))
	mux.Get("/v2/admin/branches/{branch}/climate", a.look(a.showClimate))
	mux.Get("/v2/admin/branches/{branch}/sensors", a.look(a.sensorHistory))
	mux.Get("/v2/admin/branches/{branch}/devices", a.look(a.showDevices))
	mux.Post("/v2/admin/branches/{branch}/agents", a.admin(a.enrollAgent))
	mux.Delete("/v2/admin/agents/{username}", a.admin(a.revokeAgent))
	mux.Get("/v2/admin/branches/{branch}/messages", a.look(a.listMessages))
	mux.Get("/v2/admin/messages/{id}", a.look(a.showMessage))
	mux.Post("/v2/admin/messages/{id}/resend", a.admin(a.resendMessage))
	mux.Post("/v2/admin/reservations/{id}/key-message", a.admin(a.resendKey))
	mux.Get("/v2/admin/branches/{branch}/audit", a.look(a.listAudit))
	mux.Get("/v2/admin/branches/{branch}/money", a.look(a.showMoney))
	mux.Post("/v2/admin/branches/{branch}/exports", a.look(a.noteExport))
	mux.Post("/v2/admin/reservations/{id}/refund", a.admin(a.retryRefund))
	mux.Get("/v2/admin/branches/{branch}/settings", a.look(a.showSettings))
	mux.Put("/v2/admin/branches/{branch}/settings", a.admin(a.changeSettings))
	mux.Put("/v2/admin/branches/{branch}/rooms/{room}", a.admin(a.changeRoom))
	mux.Post("/v2/admin/branches/{branch}/channels", a.admin(a.addListing))
	mux.Patch("/v2/admin/branches/{branch}/channels/{listing}", a.admin(a.switchListing))
	mux.Post("/v2/admin/branches/{branch}/channels/{listing}/export", a.admin(a.exportListing))
	mux.Post("/v2/admin/branches/{branch}/partner-bookings", a.admin(a.enterPartnerBooking))
	mux.Get("/v2/admin/account", a.look(a.showAccount))
	mux.Post("/v2/admin/account/password", a.look(a.changePassword))
	mux.Post("/v2/admin/account/totp", a.look(a.beginTOTP))
	mux.Put("/v2/admin/account/totp", a.look(a.confirmTOTP))
	mux.Delete("/v2/admin/account/totp", a.look(a.endTOTP))
	mux.Delete("/v2/admin/account/sessions/{session}", a.look(a.endOwnSession))
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
	mux.Get("/v2/admin/reservations", a.look(a.searchReservations))
	mux.Get("/v2/admin/reservations/{id}", a.look(a.reservationRecord))
	return mux
}

// ended answers the V1 door endpoints, which ended on 2026-01-31 and never drive a lock.
func (a *API) ended(http.ResponseWriter, *http.Request) error { return errEnded }
