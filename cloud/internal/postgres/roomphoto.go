package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// photoFiles are the files of photo h as JSON.
const photoFiles = `(select json_agg(json_build_object('Name', f.name, 'Width', f.width, 'Height', f.height) order by f.width) from room_photo_file f where f.photo_id = h.id)`

// RoomProfiles returns what the rooms of a branch show, by number.
func RoomProfiles(ctx context.Context, q Querier, branch booking.BranchID) ([]booking.RoomProfile, error) {
	rows, err := q.Query(ctx, `
		select r.no, coalesce(p.description_ko, ''), coalesce(p.description_en, ''), coalesce(p.amenities, '[]')
		from room r left join room_profile p on p.room_id = r.id where r.branch_id = $1 order by r.no`, branch)
	if err != nil {
		return nil, fmt.Errorf("room profiles: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p booking.RoomProfile, err error) {
		err = row.Scan(&p.RoomNo, &p.Description.Ko, &p.Description.En, &p.Amenities)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("room profiles: %w", err)
	}
	photos, err := q.Query(ctx, `
		select r.no, h.id, h.alt_ko, h.alt_en, `+photoFiles+`
		from room r join room_photo h on h.room_id = r.id where r.branch_id = $1 order by h.id`, branch)
	if err != nil {
		return nil, fmt.Errorf("photos of rooms: %w", err)
	}
	byRoom := map[int][]booking.Photo{}
	var no int
	var photo booking.Photo
	_, err = pgx.ForEachRow(photos, []any{&no, &photo.ID, &photo.Alt.Ko, &photo.Alt.En, &photo.Files}, func() error {
		byRoom[no] = append(byRoom[no], photo)
		photo = booking.Photo{} // the next row must not reuse the files
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("photos of rooms: %w", err)
	}
	for i := range list {
		list[i].Photos = byRoom[list[i].RoomNo]
	}
	return list, nil
}

// BranchCovers returns, for each branch with a photo, the first photo of its room with the lowest number.
func BranchCovers(ctx context.Context, q Querier, branches []booking.BranchID) (map[booking.BranchID]booking.Photo, error) {
	rows, err := q.Query(ctx, `
		select distinct on (r.branch_id) r.branch_id, h.id, h.alt_ko, h.alt_en, `+photoFiles+`
		from room r join room_photo h on h.room_id = r.id where r.branch_id = any($1) order by r.branch_id, r.no, h.id`, branches)
	if err != nil {
		return nil, fmt.Errorf("photos of branches: %w", err)
	}
	covers := map[booking.BranchID]booking.Photo{}
	var branch booking.BranchID
	var photo booking.Photo
	_, err = pgx.ForEachRow(rows, []any{&branch, &photo.ID, &photo.Alt.Ko, &photo.Alt.En, &photo.Files}, func() error {
		covers[branch] = photo
		photo = booking.Photo{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("photos of branches: %w", err)
	}
	return covers, nil
}

// RoomCover returns the first photo of a room, or nil.
func RoomCover(ctx context.Context, q Querier, room booking.RoomID) (*booking.Photo, error) {
	var photo booking.Photo
	err := q.QueryRow(ctx, `select h.id, h.alt_ko, h.alt_en, `+photoFiles+` from room_photo h where h.room_id = $1 order by h.id limit 1`, room).
		Scan(&photo.ID, &photo.Alt.Ko, &photo.Alt.En, &photo.Files)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("photo of room %d: %w", room, err)
	}
	return &photo, nil
}

// StoredPhoto is a photo in one width. WebP and AVIF may be nil.
type StoredPhoto struct {
	booking.PhotoFile
	Data, WebP, AVIF []byte
}

// PhotoFile returns the data of a stored file, or nil: in AVIF or WebP if that is accepted and stored, otherwise in JPEG.
func PhotoFile(ctx context.Context, q Querier, name string, acceptWebP, acceptAVIF bool) (data []byte, webp, avif bool, err error) {
	const file = `select coalesce(case when $3 then avif end, case when $2 then webp end, data) as data,
		$2 and webp is not null as webp, $3 and avif is not null as avif from `
	err = q.QueryRow(ctx, `
		(`+file+`room_photo_file where name = $1 limit 1) union all
		(`+file+`arrival_photo_file where name = $1 limit 1) limit 1`, name, acceptWebP, acceptAVIF).Scan(&data, &webp, &avif)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, false, nil
	}
	return data, webp, avif, err
}

// PutRoomProfile stores description and amenities of a room.
func PutRoomProfile(ctx context.Context, q Querier, room booking.RoomID, p booking.RoomProfile) error {
	amenities := p.Amenities
	if amenities == nil {
		amenities = []booking.Bilingual{}
	}
	_, err := q.Exec(ctx, `
		insert into room_profile (room_id, description_ko, description_en, amenities) values ($1, $2, $3, $4)
		on conflict (room_id) do update
		set description_ko = excluded.description_ko, description_en = excluded.description_en, amenities = excluded.amenities`,
		room, p.Description.Ko, p.Description.En, amenities)
	return err
}

// CountPhotos returns the number of photos of a room.
func CountPhotos(ctx context.Context, q Querier, room booking.RoomID) (n int, err error) {
	err = q.QueryRow(ctx, `select count(*) from room_photo where room_id = $1`, room).Scan(&n)
	return n, err
}

// AddPhoto adds a photo without files.
func AddPhoto(ctx context.Context, q Querier, room booking.RoomID, alt booking.Bilingual) (id int64, err error) {
	err = q.QueryRow(ctx, `insert into room_photo (room_id, alt_ko, alt_en) values ($1, $2, $3) returning id`, room, alt.Ko, alt.En).Scan(&id)
	return id, err
}

// AddPhotoFile stores a file of a photo.
func AddPhotoFile(ctx context.Context, q Querier, photo int64, f StoredPhoto) error {
	_, err := q.Exec(ctx, `insert into room_photo_file (photo_id, name, width, height, data, webp, avif) values ($1, $2, $3, $4, $5, $6, $7)`,
		photo, f.Name, f.Width, f.Height, f.Data, f.WebP, f.AVIF)
	return err
}

// DeletePhoto deletes a photo of a room with its files.
func DeletePhoto(ctx context.Context, q Querier, room booking.RoomID, id int64) (found bool, err error) {
	tag, err := q.Exec(ctx, `delete from room_photo where room_id = $1 and id = $2`, room, id)
	return tag.RowsAffected() > 0, err
}
