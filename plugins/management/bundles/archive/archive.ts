/**
 * The error for an archive that is rejected. The message is a clause with the reason, such as `it contains "a" twice`.
 */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError'
}

/**
 * Limits of an archive and its content. Sizes and lengths are in bytes. An archive that exceeds a limit is rejected.
 */
export interface ArchiveBounds {
  /** Max number of files and folders. */
  readonly maxEntries: number
  /** Max size of one inflated file. */
  readonly maxFileSize: number
  /** Max size of all inflated files. */
  readonly maxTotalSize: number
  /** Max ratio of inflated to compressed size. */
  readonly maxRatio: number
  /** The inflated size from which `maxRatio` is checked. */
  readonly ratioCheckedFrom: number
  /** Max number of segments of a path. */
  readonly maxDepth: number
  /** Max length of one path segment. */
  readonly maxNameLength: number
  /** Max length of a path. */
  readonly maxPathLength: number
}

/** One file or folder of an archive, whose headers have been checked. */
export interface ArchiveEntry {
  /** A relative path with slashes, without `..`; without a trailing slash for a folder. */
  readonly path: string
  readonly isFolder: boolean
  readonly isExecutable: boolean
  readonly isDeflated: boolean
  /** The inflated size as stated in the headers, in bytes. */
  readonly size: number
  readonly compressedSize: number
  /** The CRC-32 of the inflated content as stated in the headers. */
  readonly crc: number
  /** The offsets of the local header and of the data in the archive, in bytes. */
  readonly headerAt: number
  readonly dataAt: number
}

/** Quotes the path of an entry for a message, truncated to 100 characters. */
export const quoteEntryName = (name: string): string =>
  JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name)

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Decodes the name of an entry. @throws ArchiveError if it is not UTF-8 */
export function decodeEntryName (raw: Buffer): string {
  try {
    return utf8.decode(raw)
  } catch {
    throw new ArchiveError('it contains a name that is not UTF-8')
  }
}

/** Returns what is wrong with a path, as a predicate such as `is an absolute path`; undefined if it is valid. */
function pathProblem (path: string, bounds: ArchiveBounds): string | undefined {
  if (/\p{Cc}/u.test(path)) return 'contains a control character'
  if (path.includes('\\')) return 'contains a backslash'
  if (/^[a-z]:/i.test(path)) return 'begins with a drive letter'
  if (path.startsWith('/')) return 'is an absolute path'
  const parts = path.split('/')
  if (parts.includes('..')) return 'points outside the archive'
  if (parts.includes('') || parts.includes('.')) return 'is not normalized'
  if (parts.length > bounds.maxDepth) return `is nested deeper than ${bounds.maxDepth} folders`
  if (parts.some((part) => Buffer.byteLength(part) > bounds.maxNameLength)) {
    return `has a name of more than ${bounds.maxNameLength} bytes`
  }
  return Buffer.byteLength(path) > bounds.maxPathLength ? `has more than ${bounds.maxPathLength} bytes` : undefined
}

/**
 * Returns the form in which paths are compared: paths with equal forms are one file on systems that ignore case or
 * normalize Unicode.
 */
const comparableForm = (path: string): string => path.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')

/** Checks the paths of an archive: each must be valid, and no two may have the same `comparableForm`. */
export class ArchivePathChecker {
  readonly #bounds: ArchiveBounds
  /** The paths by their comparable form. `isStated`: whether an entry has this path, not only a path below it. */
  readonly #pathsByForm = new Map<string, { readonly path: string, readonly isFolder: boolean, isStated: boolean }>()

  constructor (bounds: ArchiveBounds) {
    this.#bounds = bounds
  }

  /** Adds the path of an entry. @throws ArchiveError */
  add (path: string, isFolder: boolean): void {
    const problem = pathProblem(path, this.#bounds)
    if (problem !== undefined) throw new ArchiveError(`the path ${quoteEntryName(path)} ${problem}`)
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      this.#addPath(path.slice(0, at), true, false)
    }
    this.#addPath(path, isFolder, true)
  }

  #addPath (path: string, isFolder: boolean, isStated: boolean): void {
    const key = comparableForm(path)
    const known = this.#pathsByForm.get(key)
    if (known === undefined) {
      this.#pathsByForm.set(key, { path, isFolder, isStated })
      return
    }
    if (known.path !== path) {
      const both = `${quoteEntryName(known.path)} and ${quoteEntryName(path)}`
      throw new ArchiveError(`${both} are the same name if case and Unicode normalization are ignored`)
    }
    if (known.isFolder !== isFolder) throw new ArchiveError(`${quoteEntryName(path)} is both a file and a folder`)
    if (isStated && known.isStated) throw new ArchiveError(`it contains ${quoteEntryName(path)} twice`)
    known.isStated ||= isStated
  }
}
