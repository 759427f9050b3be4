// Zip archives written byte by byte, so that they can lie: each header takes members that differ from what is true.
import { crc32, deflateRawSync } from 'node:zlib'

/** The members of a header (APPNOTE 4.3.7, 4.3.12) that a test may set. */
export interface Header {
  name: string | Buffer
  flags: number
  method: number
  crc: number
  compressedSize: number
  size: number
  extra: Buffer
  /** The upper 16 bits of the external attributes: the mode of UNIX. */
  mode: number
  /** Where the local header stands. */
  offset: number
}

export interface ZipEntry {
  name: string | Buffer
  data?: Buffer | string
  /** In place of the deflated data. */
  raw?: Buffer
  /** Members of both headers. */
  both?: Partial<Header>
  local?: Partial<Header>
  central?: Partial<Header>
}

/** Members of the end of central directory record. */
export interface End { entries: number, entriesOnDisk: number, size: number, offset: number, disk: number, comment: Buffer, before: Buffer }

const bytesOf = (text: string | Buffer): Buffer => typeof text === 'string' ? Buffer.from(text) : text

function header (signature: number, isCentral: boolean, values: Header): Buffer {
  const name = bytesOf(values.name)
  const fixed = Buffer.alloc(isCentral ? 46 : 30)
  fixed.writeUInt32LE(signature, 0)
  const at = isCentral ? 2 : 0
  if (isCentral) fixed.writeUInt16LE(3 << 8 | 20, 4)
  fixed.writeUInt16LE(20, 4 + at)
  fixed.writeUInt16LE(values.flags, 6 + at)
  fixed.writeUInt16LE(values.method, 8 + at)
  fixed.writeUInt32LE(values.crc >>> 0, 14 + at)
  fixed.writeUInt32LE(values.compressedSize >>> 0, 18 + at)
  fixed.writeUInt32LE(values.size >>> 0, 22 + at)
  fixed.writeUInt16LE(name.length, 26 + at)
  fixed.writeUInt16LE(values.extra.length, 28 + at)
  if (isCentral) {
    fixed.writeUInt32LE((values.mode << 16) >>> 0, 38)
    fixed.writeUInt32LE(values.offset >>> 0, 42)
  }
  return Buffer.concat([fixed, name, values.extra])
}

/** An archive of these entries. */
export function zip (entries: readonly ZipEntry[], end: Partial<End> = {}): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, data = '', raw, both, local, central } of entries) {
    const bytes = bytesOf(data)
    const isFolder = bytesOf(name).at(-1) === 0x2f
    const packed = raw ?? (isFolder ? bytes : deflateRawSync(bytes))
    const values: Header = {
      name,
      flags: 0x800,
      method: isFolder ? 0 : 8,
      crc: crc32(bytes),
      compressedSize: packed.length,
      size: bytes.length,
      extra: Buffer.alloc(0),
      mode: isFolder ? 0o040755 : 0o100644,
      offset,
      ...both
    }
    const head = header(0x04034b50, false, { ...values, ...local })
    parts.push(head, packed)
    directory.push(header(0x02014b50, true, { ...values, ...central }))
    offset += head.length + packed.length
  }
  const all = Buffer.concat(directory)
  const { comment = Buffer.alloc(0), before = Buffer.alloc(0) } = end
  const record = Buffer.alloc(22)
  record.writeUInt32LE(0x06054b50, 0)
  record.writeUInt16LE(end.disk ?? 0, 4)
  record.writeUInt16LE(end.entriesOnDisk ?? end.entries ?? entries.length, 8)
  record.writeUInt16LE(end.entries ?? entries.length, 10)
  record.writeUInt32LE(end.size ?? all.length, 12)
  record.writeUInt32LE(end.offset ?? offset, 16)
  record.writeUInt16LE(comment.length, 20)
  return Buffer.concat([...parts, all, before, record, comment])
}

/** An extra field. */
export function extraField (id: number, data: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt16LE(id, 0)
  head.writeUInt16LE(data.length, 2)
  return Buffer.concat([head, data])
}

/** The manifest of a bundle that runs `server/index.js`. */
export const manifest = (more: object = {}): Record<string, unknown> => ({
  manifest_version: '0.3',
  name: 'sample',
  version: '1.0.0',
  description: 'A sample',
  author: { name: 'Ada' },
  // eslint-disable-next-line no-template-curly-in-string
  server: { type: 'node', entry_point: 'server/index.js', mcp_config: { command: 'node', args: ['${__dirname}/server/index.js'] } },
  ...more
})

/** The entries of that bundle. */
export const bundleEntries = (more: object = {}): ZipEntry[] => [
  { name: 'manifest.json', data: JSON.stringify(manifest(more)) },
  { name: 'server/index.js', data: '// nothing' }
]

/** Archives that must be refused, by what is wrong with them; with a pattern of the reason that is given. */
export function hostile (): Record<string, [archive: Buffer, reason: RegExp]> {
  const sound = bundleEntries()
  const path = (name: string | Buffer, reason: RegExp, both?: Partial<Header>): [Buffer, RegExp] =>
    [zip([...sound, { name, data: 'x', both }]), reason]
  const lie = (members: Pick<ZipEntry, 'local' | 'central' | 'both' | 'raw'>, reason: RegExp): [Buffer, RegExp] =>
    [zip([...sound, { name: 'lie.txt', data: 'x'.repeat(1_000), ...members }]), reason]
  const zeros = Buffer.alloc(3 * 1024 * 1024)
  const small = deflateRawSync(zeros)
  const whole = zip(sound)
  const shared: ZipEntry = { name: 'one.txt', data: 'same bytes' }
  const offsetOfShared = zip(sound).indexOf(Buffer.from([0x50, 0x4b, 1, 2]))
  return {
    climbs: path('../climbed.txt', /points outside/),
    'climbs further down': path('a/../../climbed.txt', /points outside/),
    'climbs with backslashes': path('..\\climbed.txt', /backslash/),
    'is absolute': path('/tmp/absolute.txt', /absolute/),
    'begins with a drive': path('C:/absolute.txt', /drive/),
    'has an empty part': path('a//b.txt', /not normalized/),
    'has a dot': path('./a.txt', /not normalized/),
    'has NUL': path('a\0.txt', /control character/),
    'has a line break': path('a\nb.txt', /control character/),
    'is not UTF-8': path(Buffer.from([0x61, 0xff, 0xfe]), /not UTF-8/),
    'has a long name': path('a'.repeat(256), /255 bytes/),
    'has a long path': path(`${'a'.repeat(250)}/`.repeat(5) + 'a', /1024 bytes/),
    'is deep': path('a/'.repeat(32) + 'a', /32 folders/),
    'is a link': [zip([...sound, { name: 'link', data: '/etc/passwd', both: { mode: 0o120777 } }]), /links/],
    'is a link to a folder, and a file below it': [
      zip([...sound, { name: 'link', data: '/tmp', both: { mode: 0o120777 } }, { name: 'link/a', data: 'x' }]), /links/
    ],
    'is a hard link': path('hard', /link/, { extra: extraField(0x000d, Buffer.from('123456789012/etc/passwd')) }),
    'is a device': path('device', /devices/, { mode: 0o020644 }),
    'is a pipe': path('pipe', /devices/, { mode: 0o010644 }),
    'is a folder with content': path('folder/', /folder with content/),
    'is there twice': [zip([...sound, { name: 'a', data: '1' }, { name: 'a', data: '2' }]), /twice/],
    'is a second manifest': [zip([...sound, { name: 'manifest.json', data: '{}' }]), /twice/],
    'differs in case': [zip([...sound, { name: 'Manifest.JSON', data: '{}' }]), /same name/],
    'differs in case of a folder': [zip([...sound, { name: 'SERVER/other.js', data: '1' }]), /same name/],
    'differs in Unicode form': [zip([...sound, { name: 'caf\u00e9', data: '1' }, { name: 'cafe\u0301', data: '2' }]), /same name/],
    'is a file and a folder': [zip([...sound, { name: 'a', data: '1' }, { name: 'a/b', data: '2' }]), /both a file and a folder/],
    'is encrypted': path('secret', /encrypted/, { flags: 0x801 }),
    'is strongly encrypted': path('secret', /damaged|encrypted/, { flags: 0x841 }),
    'is compressed otherwise': path('other', /method/, { method: 12 }),
    'has two names': lie({ local: { name: 'lii.txt' } }, /two different ways/),
    'has two sizes': lie({ local: { size: 5 } }, /two different ways/),
    'has two checksums': lie({ local: { crc: 5 } }, /two different ways/),
    'has two methods': lie({ local: { method: 0 } }, /two different ways/),
    'has another name in an extra field': lie(
      { central: { extra: extraField(0x7075, Buffer.concat([Buffer.from([1, 0, 0, 0, 0]), Buffer.from('../x')])) } }, /two names/
    ),
    'has ZIP64 sizes': lie({ central: { extra: extraField(0x0001, Buffer.alloc(16)) } }, /ZIP64/),
    'is larger than stated': lie({ both: { size: 10 } }, /larger than stated/),
    'is smaller than stated': lie({ both: { size: 2_000 } }, /smaller than stated/),
    'has another checksum': lie({ both: { crc: 1 } }, /checksum/),
    'has bytes behind its data': lie({ raw: Buffer.concat([deflateRawSync('x'.repeat(1_000)), Buffer.from('more')]) }, /smaller than stated/),
    'is cut within its data': lie({ raw: deflateRawSync('x'.repeat(1_000)).subarray(0, 5) }, /damaged/),
    'is no deflated data': lie({ raw: Buffer.from([0xff, 0xff, 0xff, 0xff]) }, /damaged/),
    'has a local header elsewhere': lie({ central: { offset: 3 } }, /damaged/),
    'has a local header far away': lie({ central: { offset: 0x7fffffff } }, /damaged/),
    'shares bytes': [
      zip([...sound, shared, { name: 'one.txt', data: '', raw: Buffer.alloc(0), central: { offset: offsetOfShared } }]), /twice|overlaps|ways/
    ],
    'is a bomb': [zip([...sound, { name: 'bomb', data: zeros }]), /too high a compression ratio/],
    'is a bomb that says otherwise': [
      zip([...sound, { name: 'bomb', raw: small, both: { size: 100, crc: 0, compressedSize: small.length } }]), /larger than stated/
    ],
    'is many small bombs': [
      zip([...sound, ...Array.from({ length: 60 }, (_, at) => ({ name: `bomb-${at}`, data: zeros.subarray(0, 1_000_000) }))]),
      /too high a compression ratio/
    ],
    'says that it is huge': lie({ both: { size: 0x7fffffff } }, /larger than/),
    'says that all are huge': [
      zip([...sound, ...Array.from({ length: 6 }, (_, at) => ({ name: `huge-${at}`, data: 'x', both: { size: 100 * 1024 * 1024 } }))]),
      /too high a compression ratio|in total/
    ],
    'has 10,001 entries': [zip(Array.from({ length: 10_001 }, (_, at) => ({ name: `f${at}`, data: '' }))), /10000 files/],
    'has more entries than it says': [zip([...sound, { name: 'hidden', data: '1' }], { entries: 2 }), /more entries than stated/],
    'has fewer entries than it says': [zip(sound, { entries: 3 }), /damaged/],
    'has another directory': [zip(sound, { offset: 0 }), /at the stated position/],
    'is a part': [zip(sound, { disk: 1 }), /part of a multi-part/],
    'has a ZIP64 end': [
      zip(sound, { before: Buffer.concat([Buffer.from([0x50, 0x4b, 6, 7]), Buffer.alloc(16)]) }), /ZIP64/
    ],
    'has bytes behind it': [Buffer.concat([whole, Buffer.from('more')]), /other bytes/],
    'is cut off': [whole.subarray(0, whole.length - 30), /cut off/],
    'is cut at its start': [whole.subarray(40), /at the stated position/],
    'is cut to one byte': [whole.subarray(0, 1), /cut off/],
    'is empty': [Buffer.alloc(0), /cut off/],
    'is an empty archive': [zip([]), /no manifest/],
    'is no archive': [Buffer.from('GIF89a'.repeat(100)), /not a zip archive/]
  }
}
