import type { Io } from '../io.ts'
import type { Report } from './report.ts'

/** What a script (backup, restore, db) is given: its arguments, its process, and where it reports. */
export interface Task { readonly args: string[], readonly io: Io, readonly report: Report }
