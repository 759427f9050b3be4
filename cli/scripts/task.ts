import type { Io } from '../io.ts'
import type { Report } from './report.ts'

/** The input of a script (backup, restore, db): its arguments, process streams and progress reporter. */
export interface Task { readonly args: string[], readonly io: Io, readonly report: Report }
