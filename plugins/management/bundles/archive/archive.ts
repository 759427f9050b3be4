/**
 * An archive that cannot be accepted. The message is a clause that says why, such as `it holds two files named "a"`.
 */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError'
}

/** Limits for an archive and its content, in bytes where they are sizes. An archive that exceeds one is rejected. */
export interface ArchiveBounds {
  /** Max number of files and folders. */
  readonly maxEntries: number
  /** Max size of one inflated file. */
  readonly maxFileSize: number
  /** Max size of all inflated files. */
  readonly maxTotalSize: number
  /** Max ratio of inflated to compressed bytes, checked only beyond `ratioCheckedFrom` inflated bytes. */
  readonly maxRatio: number
  readonly ratioCheckedFrom: number
  /** Max depth of folders. */
  readonly maxDepth: number
  /** Max length of one path segment. */
  readonly maxNameLength: number
  /** Max length of a path. */
  readonly maxPathLength: number
}

/** One file or folder of an archive, with checked headers. */
export interface ArchiveEntry {
  /** A relative path with slashes, without `..`; without a trailing slash for a folder. */
  readonly path: string
  readonly isFolder: boolean
  readonly isExecutable: boolean
  readonly isDeflated: boolean
  /** The inflated size according to the headers. */
  readonly size: number
  readonly compressedSize: number
  readonly crc: number
  /** Where the local header and the data begin in the archive. */
  readonly headerAt: number
  readonly dataAt: number
}

/** Quotes a name for a message. */
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

/** Returns why a path is invalid, as the end of a clause; undefined if it is valid. */
function pathProblem (path: string, bounds: ArchiveBounds): string | undefined {
  if (/\p{Cc}/u.test(path)) return 'contains a control character'
  if (path.includes('\\')) return 'contains a backslash'
  if (/^[a-z]:/i.test(path)) return 'begins with a drive letter'
  if (path.startsWith('/')) return 'is an absolute path'
  const parts = path.split('/')
  if (parts.includes('..')) return 'points outside the archive'
  if (parts.includes('') || parts.includes('.')) return 'is not normalized'
  if (parts.length > bounds.maxDepth) return `is nested deeper than ${bounds.maxDepth} folders`
  if (parts.some((part) =>
    Buffer.byteLength(part) > bounds.maxNameLength)) return `has a name of more than ${bounds.maxNameLength} bytes`
  return Buffer.byteLength(path) > bounds.maxPathLength ? `has more than ${bounds.maxPathLength} bytes` : undefined
}

/**
 * Returns the form in which paths are compared: paths with equal forms are one file on systems that ignore case or
 * normalize Unicode.
 */
const comparableForm = (path: string): string => path.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')

/** Checks the paths of an archive: all must be valid, and differ even if case is ignored or Unicode normalized. */
export class ArchivePaths {
  readonly #bounds: ArchiveBounds
  /**
   * The paths by their comparable form. `isStated`: whether an entry has this path; otherwise it is only a parent
   * folder of one.
   */
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
