import { writeFileSync } from 'node:fs'
import { deflateSync, inflateSync } from 'node:zlib'

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Colours of a palette. Pictures of pages have few, and shades of them at the edges of letters. */
const maxColours = 64
/** In pixels: the area of a short label. */
const largeArea = 400

interface Image { readonly width: number, readonly height: number, /** RGB, 3 bytes a pixel. */ readonly pixels: Buffer }

/**
 * Writes a picture of a page as a PNG with a palette, which takes a third.
 * @param png 8 bits a channel, RGB or RGBA, not interlaced, as Chromium makes it
 */
export function writeSmall (file: string, png: Buffer): void {
  const { width, height, pixels } = decode(png)
  const { palette, indexOf } = paletteOf(pixels)
  const rows = Buffer.alloc(height * (width + 1))
  for (let y = 0, from = 0; y < height; y++) {
    for (let x = 0; x < width; x++, from += 3) rows[y * (width + 1) + x + 1] = indexOf(colourAt(pixels, from))
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 3, 0, 0, 0], 8)
  writeFileSync(file, Buffer.concat([
    signature, chunk('IHDR', head), chunk('PLTE', Buffer.from(palette.flatMap((rgb) => [rgb >> 16, rgb >> 8 & 255, rgb & 255]))),
    chunk('IDAT', deflateSync(rows, { level: 9 })), chunk('IEND', Buffer.alloc(0))
  ]))
}

const colourAt = (pixels: Buffer, at: number): number => pixels.readUIntBE(at, 3)

/** The most frequent colours, each different enough from those before it, and the nearest of them to each colour. */
function paletteOf (pixels: Buffer): { palette: number[], indexOf: (rgb: number) => number } {
  const counts = new Map<number, number>()
  for (let at = 0; at < pixels.length; at += 3) {
    const rgb = colourAt(pixels, at)
    counts.set(rgb, (counts.get(rgb) ?? 0) + 1)
  }
  const sorted = [...counts].sort(([, one], [, other]) => other - one).map(([rgb]) => rgb)
  // Large areas keep their very colour.
  const palette = sorted.slice(0, maxColours / 2).filter((rgb) => (counts.get(rgb) ?? 0) >= largeArea)
  for (const least of [900, 300, 60]) {
    for (const rgb of sorted) {
      if (palette.length < maxColours && palette.every((each) => distance(each, rgb) > least)) palette.push(rgb)
    }
  }
  const known = new Map<number, number>()
  const indexOf = (rgb: number): number => {
    const index = known.get(rgb) ?? palette.reduce((best, each, at) =>
      distance(each, rgb) < distance(palette[best] ?? 0, rgb) ? at : best, 0)
    known.set(rgb, index)
    return index
  }
  return { palette, indexOf }
}

const distance = (one: number, other: number): number =>
  ((one >> 16) - (other >> 16)) ** 2 + ((one >> 8 & 255) - (other >> 8 & 255)) ** 2 + ((one & 255) - (other & 255)) ** 2

function chunk (type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

const table = Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? value >>> 1 ^ 0xedb88320 : value >>> 1
  return value
})
const crc32 = (data: Buffer): number =>
  (data.reduce((sum, byte) => (table[(sum ^ byte) & 255] ?? 0) ^ sum >>> 8, 0xffffffff) ^ 0xffffffff) >>> 0

/** Reads a PNG (W3C PNG, 9: filters). */
function decode (png: Buffer): Image {
  const parts: Buffer[] = []
  let [width, height, size] = [0, 0, 3]
  for (let at = signature.length; at < png.length;) {
    const length = png.readUInt32BE(at)
    const type = png.toString('latin1', at + 4, at + 8)
    const data = png.subarray(at + 8, at + 8 + length)
    if (type === 'IHDR') [width, height, size] = [data.readUInt32BE(0), data.readUInt32BE(4), data[9] === 6 ? 4 : 3]
    if (type === 'IDAT') parts.push(data)
    at += length + 12
  }
  const raw = inflateSync(Buffer.concat(parts))
  const stride = width * size
  const pixels = Buffer.alloc(width * height * 3)
  let above = Buffer.alloc(stride)
  for (let y = 0; y < height; y++) {
    const from = y * (stride + 1)
    const line = Buffer.from(raw.subarray(from + 1, from + 1 + stride))
    for (let x = 0; x < stride; x++) {
      const [left, up, corner] = [x < size ? 0 : line[x - size] ?? 0, above[x] ?? 0, x < size ? 0 : above[x - size] ?? 0]
      line[x] = ((line[x] ?? 0) + predicted(raw[from] ?? 0, left, up, corner)) & 255
    }
    for (let x = 0; x < width; x++) line.copy(pixels, (y * width + x) * 3, x * size, x * size + 3)
    above = line
  }
  return { width, height, pixels }
}

function predicted (filter: number, left: number, up: number, corner: number): number {
  if (filter === 1) return left
  if (filter === 2) return up
  if (filter === 3) return (left + up) >> 1
  if (filter !== 4) return 0
  const [ofLeft, ofUp, ofCorner] = [left, up, corner].map((each) => Math.abs(left + up - corner - each))
  if ((ofLeft ?? 0) <= (ofUp ?? 0) && (ofLeft ?? 0) <= (ofCorner ?? 0)) return left
  return (ofUp ?? 0) <= (ofCorner ?? 0) ? up : corner
}
