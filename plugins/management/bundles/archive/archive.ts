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
export const quoteEntryName = (name: string): string => JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name)
