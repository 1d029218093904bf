// Photos that managers upload.

import { h } from "../core/dom";
import type { Signal } from "../core/signal";

/** Longer side of an upload in pixels, somewhat more than the service keeps of photos for guests. */
const longestSide = 2400;

/** An input for a photo file. Its value is emptied by its user after the upload. */
export function photoInput(file: Signal<File | null>): HTMLInputElement {
  const choose = h("input", {
    type: "file",
    accept: "image/jpeg,image/png,image/webp",
    onchange: () => file.set(choose.files?.[0] ?? null),
  });
  return choose;
}

/** The photo in base64. A large one is made smaller first, so that it also passes a slow network. */
export async function uploadOf(file: File, longSide = longestSide): Promise<string> {
  return base64(await shrunk(file, longSide).catch(() => file)); // the service rejects a file that no browser reads
}

async function shrunk(file: File, longSide: number): Promise<Blob> {
  const photo = await createImageBitmap(file); // turned as its EXIF asks
  const scale = longSide / Math.max(photo.width, photo.height);
  if (scale >= 1) return file;
  const canvas = h("canvas", { width: Math.round(photo.width * scale), height: Math.round(photo.height * scale) });
  const context = canvas.getContext("2d")!;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(photo, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/jpeg", 0.9);
  });
}

const base64 = (data: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(data);
  });
