import { StorageError } from '../../../db/store.ts'
import { errors } from './list.ts'

/** Waits for an answer of the records. @throws RecordsAway instead of a StorageError */
export async function askedRecords<Result> (answer: Promise<Result>): Promise<Result> {
  try {
    return await answer
  } catch (error) {
    throw error instanceof StorageError ? new errors.RecordsAway(error.message) : error
  }
}
