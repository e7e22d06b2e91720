// What the compiler knows of fenced commands. Checked by compiling: nothing runs.

import {
  DeleteItemCommand,
  PutItemCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type DynamoDBClient,
} from '@aws-sdk/client-dynamodb';
import {
  DeleteCommand,
  PutCommand,
  TransactWriteCommand,
  UpdateCommand,
  type DynamoDBDocumentClient,
  type PutCommandOutput,
} from '@aws-sdk/lib-dynamodb';
import { fenced, tombstone, type Lease } from '../../src/index.ts';
import { same } from './same.ts';

declare const lease: Lease;
declare const client: DynamoDBClient;
declare const documents: DynamoDBDocumentClient;
const TableName = 't';

export const put = fenced(new PutCommand({ TableName, Item: {} }), lease);
same<typeof put, PutCommand>(true);
export const putItem = fenced(new PutItemCommand({ TableName, Item: {} }), lease);
same<typeof putItem, PutItemCommand>(true);
export const update = fenced(new UpdateCommand({ TableName, Key: {} }), lease);
same<typeof update, UpdateCommand>(true);
export const transaction = fenced(new TransactWriteCommand({ TransactItems: [] }), lease);
same<typeof transaction, TransactWriteCommand>(true);
export const items = fenced(new TransactWriteItemsCommand({ TransactItems: [] }), lease);
same<typeof items, TransactWriteItemsCommand>(true);

export const sent = documents.send(put);
same<typeof sent, Promise<PutCommandOutput>>(true);
export const alsoSent = client.send(fenced(putItem, lease, { attribute: 'other' }));

// --- A tombstone is the input of an update of the same client ------------------------------------

const deletion = new DeleteItemCommand({ TableName, Key: { id: { S: '1' } } });
export const buriedItem = new UpdateItemCommand(tombstone(deletion, lease));
const documentDeletion = new DeleteCommand({ TableName, Key: { id: '1' } });
export const buried = new UpdateCommand(tombstone(documentDeletion, lease, { mark: 'gone' }));
export const inTransaction = new TransactWriteItemsCommand({
  TransactItems: [{ Update: tombstone(deletion, lease) }],
});

// --- What is refused ----------------------------------------------------------------------------

// @ts-expect-error The input is not the command.
fenced({ TableName, Item: {} }, lease);
// @ts-expect-error A lease has a token.
fenced(put, { holderIdentity: 'a' });
// @ts-expect-error A misspelt option.
fenced(put, lease, { atribute: 'a' });
// @ts-expect-error A Put deletes nothing.
tombstone(put, lease);
