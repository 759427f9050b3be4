/** An archive cannot be accepted. The message is a clause that says why, such as `it holds two files named "a"`. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError'
}

/** Max sizes of an archive and its content; beyond: it is refused. Sizes are in bytes. */
export interface ArchiveBounds {
  /** Files and folders. */
  readonly entries: number
  /** One file, inflated. */
  readonly file: number
  /** All files, inflated. */
  readonly total: number
  /** Inflated bytes per byte of the archive, counted once more than `ratioFrom` bytes are inflated. */
  readonly ratio: number
  readonly ratioFrom: number
  /** Folders within each other. */
  readonly depth: number
  /** One name between slashes. */
  readonly name: number
  /** A whole path. */
  readonly path: number
}

/** One file or folder of an archive, whose headers were checked. */
export interface ArchiveEntry {
  /** Relative, with slashes, without `..`. Of a folder without a slash at its end. */
  readonly path: string
  readonly isFolder: boolean
  readonly isExecutable: boolean
  readonly isDeflated: boolean
  /** Inflated, as the headers say. */
  readonly size: number
  readonly compressedSize: number
  readonly crc: number
  /** Where the local header and the data begin in the archive. */
  readonly headerAt: number
  readonly dataAt: number
}

/** A name as it is shown in a message. */
export const quoteEntryName = (name: string): string =>
  JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name)

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Decodes a name. @throws ArchiveError when it is not UTF-8 */
export function decodeName (raw: Buffer): string {
  try {
    return utf8.decode(raw)
  } catch {
    throw new ArchiveError('it holds a name that is not UTF-8')
  }
}

/** The reason why an entry must not have this path, as the end of a clause; undefined: it may. */
function pathProblem (path: string, bounds: ArchiveBounds): string | undefined {
  if (/\p{Cc}/u.test(path)) return 'has a control character'
  if (path.includes('\\')) return 'has a backslash'
  if (/^[a-z]:/i.test(path)) return 'begins with a drive letter'
  if (path.startsWith('/')) return 'is absolute'
  const parts = path.split('/')
  if (parts.includes('..')) return 'leads out of the archive'
  if (parts.includes('') || parts.includes('.')) return 'is not in its plain form'
  if (parts.length > bounds.depth) return `is nested deeper than ${bounds.depth} folders`
  if (parts.some((part) => Buffer.byteLength(part) > bounds.name)) return `has a name of more than ${bounds.name} bytes`
  return Buffer.byteLength(path) > bounds.path ? `has more than ${bounds.path} bytes` : undefined
}

/** Two names are the same file on some system when they are equal in this form. */
const folded = (path: string): string => path.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')

/**
 * The paths of an archive: each is valid, and no two of them are one file on a system that ignores case or normalizes
 * Unicode.
 */
export class Names {
  readonly #bounds: ArchiveBounds
  /** By folded path. `isStated`: it has an entry, and is not only part of another one's path. */
  readonly #known = new Map<string, { readonly path: string, readonly isFolder: boolean, isStated: boolean }>()

  constructor (bounds: ArchiveBounds) {
    this.#bounds = bounds
  }

  /** Adds the path of an entry. @throws ArchiveError */
  add (path: string, isFolder: boolean): void {
    const problem = pathProblem(path, this.#bounds)
    if (problem !== undefined) throw new ArchiveError(`the path ${quoteEntryName(path)} ${problem}`)
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      this.#put(path.slice(0, at), true, false)
    }
    this.#put(path, isFolder, true)
  }

  #put (path: string, isFolder: boolean, isStated: boolean): void {
    const key = folded(path)
    const known = this.#known.get(key)
    if (known === undefined) {
      this.#known.set(key, { path, isFolder, isStated })
      return
    }
    if (known.path !== path) {
      const both = `${quoteEntryName(known.path)} and ${quoteEntryName(path)}`
      throw new ArchiveError(`${both} are the same name where case or Unicode forms do not count`)
    }
    if (known.isFolder !== isFolder) throw new ArchiveError(`${quoteEntryName(path)} is both a file and a folder`)
    if (isStated && known.isStated) throw new ArchiveError(`it holds ${quoteEntryName(path)} twice`)
    known.isStated ||= isStated
  }
}
