import { dirname } from 'node:path'
import pLimit from 'p-limit'
import { messageOf } from '../errors.ts'
import { applyChanges, type SettingsDocument } from '../apply.ts'
import {
  assertSectionTypesKept, hasPlainTokens, parseSnapshot, type ParsedSettings
} from '../document.ts'
import { serializeSettings } from '../document-text.ts'
import { FolderError, makeFolder } from '../folder.ts'
import { FileLock, LockHeldError } from '../file-lock.ts'
import { checkInvariants, checkChangedValues } from '../invariants.ts'
import { SnapshotListeners } from '../listeners.ts'
import { ConflictError, StorageError, type Change, type Snapshot, type Store } from '../store.ts'
import { SettingsFile } from './settings-file.ts'
import { SettingsFileHealth } from './file-state.ts'
import { loadDocument, convertReadErrors } from './load.ts'
import { parseSettings } from './parse.ts'
import { shareUnchangedParts } from './share.ts'
import type { SectionAccess, ReadSection, SectionsUpdate } from './section.ts'
import { FileWatcher } from './watcher.ts'
import { FileEditedError, toWriteError } from './write.ts'

/** Min time from a failed write until a test of whether the file can be written again, in ms. */
const writeTestInterval = 5_000

const invalidEditMessage = 'The settings file was edited and is not valid; the log says what is wrong.'

/**
 * The settings in a JSON file that may also be edited by hand. All reads and writes of the file run one at a time, so
 * that no check of the file runs during a write. An unusable file is neither treated as empty nor overwritten, unless a
 * write of this gateway was interrupted and can be undone.
 */
export class JsonFileStore implements Store, SectionAccess {
  readonly #path: string
  readonly #warn: (message: string) => void
  readonly #disk: SettingsFile
  readonly #queue = pLimit(1)
  readonly #listeners: SnapshotListeners
  #lock: FileLock | undefined
  #watcher: FileWatcher | undefined
  #reading: ParsedSettings | undefined
  readonly #state: SettingsFileHealth
  #isChecking = false
  #isClosed = false

  constructor (path: string, warn: (message: string) => void = () => {}) {
    this.#path = path
    this.#warn = warn
    this.#disk = new SettingsFile(path)
    this.#listeners = new SnapshotListeners(warn)
    this.#state = new SettingsFileHealth(path, warn)
  }

  async load (): Promise<Snapshot> {
    return await this.#queue(async () => {
      if (this.#isClosed) throw new Error('The store is closed.')
      if (this.#reading) {
        if (await this.#checkFile() === 'invalid') throw new Error(this.#state.invalid?.reason)
        return this.#reading.snapshot
      }
      const lock = await this.#openLock()
      try {
        const { document, problems } = await loadDocument({
          disk: this.#disk,
          path: this.#path,
          isLocked: lock.isHeld,
          recover: async () => await this.#recover()
        })
        const reading = this.#read(document)
        this.#reading =
          { ...reading, snapshot: { ...reading.snapshot, problems: [...problems, ...reading.snapshot.problems] } }
        this.#state.logWriteFailure()
        this.#watcher = new FileWatcher(await this.#disk.realPath(), () => { this.#onPossibleChange() })
        return this.#reading.snapshot
      } catch (error) {
        lock.release()
        throw error
      }
    })
  }

  async commit (changes: readonly Change[], baseVersion: number): Promise<Snapshot> {
    return await this.#queue(async () => {
      if (this.#isClosed) throw new StorageError('The store is closed.', false)
      if (baseVersion !== this.#requireReading().snapshot.version) {
        throw new ConflictError('The settings have been changed in the meantime.', false)
      }
      // Repeated if the file was edited right before the write. The commit then fails if the edit changed the settings.
      for (;;) {
        const found = await this.#checkFile()
        if (found === 'invalid') {
          throw new ConflictError(
            'the file is not valid. `tool-hub check` and the log say what is wrong.', true
          )
        }
        if (found === 'edited') throw new ConflictError('The settings file has been edited in the meantime.', true)
        const former = this.#requireReading()
        checkChangedValues(changes)
        const document = applyChanges(former.document, changes)
        if (document === former.document && found === 'same') return former.snapshot
        const next = parseSnapshot(document, former.snapshot.version + 1, former)
        checkInvariants(former.snapshot, next.snapshot)
        if (!await this.#write(document)) continue
        this.#reading = next
        // The write has replaced the last plain-text token in the file by its hash, and the backup must not keep it.
        if (hasPlainTokens(former.snapshot) && !hasPlainTokens(next.snapshot)) await this.#overwriteBackup()
        return next.snapshot
      }
    })
  }

  readSection (name: string): unknown {
    return this.#requireReading().document[name]
  }

  /** Changes sections that are not in the snapshot; its version stays the same. A valid file edit is no conflict. */
  async updateSections<Result> (change: (sections: ReadSection) => SectionsUpdate<Result>): Promise<Result> {
    return await this.#queue(async () => {
      if (this.#isClosed) throw new StorageError('The store is closed.', false)
      for (;;) {
        if (await this.#checkFile() === 'invalid') throw new StorageError(invalidEditMessage, false)
        const former = this.#requireReading()
        const { changed, result, onWritten, dropsSecret } = change((name) => former.document[name])
        if (Object.keys(changed).length === 0) return result
        const document = { ...former.document, ...changed }
        if (!await this.#write(document)) continue
        this.#reading = { ...former, document }
        onWritten?.()
        if (dropsSecret === true) await this.#overwriteBackup()
        return result
      }
    })
  }

  onChange (listener: (snapshot: Snapshot) => void): () => void {
    return this.#listeners.add(listener)
  }

  health (readonly = false): string | undefined {
    if (this.#isClosed) return 'The store is closed.'
    if (this.#state.invalid) return invalidEditMessage
    return this.#state.readFailure ?? (readonly ? undefined : this.#state.writeFailure?.reason)
  }

  editProblem (): string | undefined { return this.#state.invalid?.reason }

  async close (): Promise<void> {
    await this.#queue(async () => {
      this.#isClosed = true
      this.#watcher?.close()
      this.#listeners.clear()
      this.#lock?.release()
    })
  }

  #requireReading (): ParsedSettings {
    if (!this.#reading) throw new Error('`load` must be called first')
    return this.#reading
  }

  /** Writes a document. @returns false if the file was edited, in which case nothing is written @throws StorageError */
  async #write (document: SettingsDocument): Promise<boolean> {
    try {
      await this.#acquireLock()
      await this.#disk.write(Buffer.from(serializeSettings(document)))
      this.#state.markWritable()
      return true
    } catch (error) {
      if (error instanceof FileEditedError) return false
      const failure = toWriteError(error)
      this.#state.markWriteFailure(failure)
      throw failure
    }
  }

  async #overwriteBackup (): Promise<void> {
    await this.#disk.overwriteBackup().catch((error: unknown) => { this.#state.logBackupFailure(error) })
  }

  /**
   * Acquires the lock on the settings file, and creates its folder if it is missing. If the lock file or, on a full
   * disk, the folder cannot be created, the store opens without the lock, and only reads the file until a write works.
   * @throws Error when another process has the lock, or the folder cannot be created for another reason
   */
  async #openLock (): Promise<FileLock> {
    const path = await this.#disk.realPath()
    this.#lock = new FileLock(path)
    try {
      makeFolder(dirname(path), 'SETTINGS_PATH')
      await this.#lock.acquire()
    } catch (error) {
      if (error instanceof LockHeldError) {
        throw new Error(
          `The settings file ${this.#path} is ${error.message}. Stop that process first, or start this one with ` +
          'another SETTINGS_PATH.',
          { cause: error }
        )
      }
      // Without the folder, no change could ever be stored. A full disk, however, may be fixed while the process runs.
      if (error instanceof FolderError && !toWriteError(error).isFull) throw error
      this.#state.recordWriteFailureUnlogged(toWriteError(error))
    }
    return this.#lock
  }

  /** Acquires the lock before a write, if it could not be acquired at the start. @throws StorageError, system errors */
  async #acquireLock (): Promise<void> {
    await this.#lock?.acquire().catch((error: unknown) => {
      throw error instanceof LockHeldError
        ? new StorageError(`The settings file is ${error.message}. Nothing was changed.`, false)
        : error
    })
  }

  /** Restores the file if an interrupted write in place left it incomplete. @returns whether it was restored */
  async #recover (): Promise<boolean> {
    return this.#lock?.isHeld === true && await this.#disk.recover().catch(() => false)
  }

  #read (document: SettingsDocument, former?: ParsedSettings): ParsedSettings {
    try {
      if (former) assertSectionTypesKept(former.document, document)
      return parseSnapshot(document, (former?.snapshot.version ?? 0) + 1, former)
    } catch (error) {
      throw new Error(
        `The settings file ${this.#path} cannot be used: ${messageOf(error)}. It was not changed: correct it.`
      )
    }
  }

  /**
   * Reads the file if it was edited, and notifies the listeners if the edit changed the settings.
   * @returns `same` if the settings are those in memory; `edited` if an edit has changed them; `gone` if the file no
   *   longer exists; `invalid` if the edit cannot be used, so that the settings in memory stay as they are
   * @throws StorageError when the system cannot read the file now
   */
  async #checkFile (): Promise<'same' | 'gone' | 'edited' | 'invalid'> {
    const former = this.#reading
    if (!former) return 'same'
    try {
      const found = await convertReadErrors(this.#disk.findEdit(), this.#path)
      if (found === 'gone' || found === 'none') {
        this.#state.markMissing(found === 'none')
        return found === 'none' ? 'same' : 'gone'
      }
      if (found === 'same') {
        this.#state.markValid()
        return 'same'
      }
      const document = shareUnchangedParts(former.document, parseSettings(found.bytes, this.#path))
      const next = document === former.document ? former : this.#read(document, former)
      this.#disk.remember(found)
      if (this.#lock?.isHeld === true && await this.#disk.restrictMode()) {
        this.#warn(
          `The settings file ${this.#path} could be written by other users; now only its owner can read and write it.`
        )
      }
      this.#state.markValid()
      if (next === former) return 'same'
      this.#reading = next
      this.#listeners.notify(next.snapshot)
      return 'edited'
    } catch (error) {
      if (error instanceof StorageError) {
        this.#state.markReadFailure(error)
        throw error
      }
      if (await this.#recover()) return await this.#checkFile()
      this.#state.markInvalid(messageOf(error))
      return 'invalid'
    }
  }

  /** Starts a check of the file in the background, unless one is pending already. */
  #onPossibleChange (): void {
    if (this.#isChecking || this.#isClosed) return
    this.#isChecking = true
    void this.#queue(async () => {
      if (this.#isClosed) return
      this.#state.reportMissing(await this.#checkFile() === 'gone')
      this.#state.reportInvalid()
      const { writeFailure } = this.#state
      if (writeFailure && Date.now() - writeFailure.since >= writeTestInterval) await this.#testWrite()
    }).catch((error: unknown) => {
      // A StorageError is a read failure, which `markReadFailure` has logged.
      if (!(error instanceof StorageError)) this.#warn(messageOf(error))
    }).finally(() => { this.#isChecking = false })
  }

  /** Tests after a failed write whether writing works again, so that `health` recovers before the next change. */
  async #testWrite (): Promise<void> {
    try {
      await this.#acquireLock()
      await this.#disk.testWrite()
      this.#state.markWritable()
    } catch (error) {
      this.#state.markWriteFailure(toWriteError(error))
    }
  }
}
