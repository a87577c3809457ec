"""Prints scale-free-384.mtx: the Laplacian of a random graph whose degrees follow a power law, plus the unit matrix,
which makes it definite.

Vertices come one after another, and each joins earlier ones, vertex i with a probability that falls as i^(-3/4): so
do their degrees. They keep the numbers by which they came: blocks of low ones have the hubs, whose elements all others
need, and blocks of high ones need few of one another's, or none.
"""
import random

VERTICES, PICKED, SEED = 384, 2, 20260406


def graph():
    """For each vertex those before it that it joins. Random.random() is the same in every version of Python."""
    source = random.Random(SEED)
    joined = [set()]
    for vertex in range(1, VERTICES):
        shares = [source.random() for _ in range(PICKED)]
        joined.append({int(vertex * (share * share) * (share * share)) for share in shares})
    return joined


def main():
    joined = graph()
    degree = [len(mine) for mine in joined]
    for mine in joined:
        for other in mine:
            degree[other] += 1
    print("%%MatrixMarket matrix coordinate integer symmetric")
    print(f"% Made by scale_free.py: the Laplacian, plus the unit matrix, of a random graph of {VERTICES} vertices, each")
    print(f"% of which picked {PICKED} before it, vertex i with a probability that falls as i^(-3/4) (seed {SEED}).")
    print(VERTICES, VERTICES, VERTICES + sum(map(len, joined)))
    for column in range(VERTICES):
        print(column + 1, column + 1, degree[column] + 1)
        for row in range(column + 1, VERTICES):
            if column in joined[row]:
                print(row + 1, column + 1, -1)


if __name__ == "__main__":
    main()
